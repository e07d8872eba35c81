"""``python -m convgrad_cy check``: it passes here, reaches all kernels, and finds faults that are planted."""

import json
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import assert_one_line, start, status_of

import convgrad_cy as cg
from convgrad_cy import _repeat, cpu
from convgrad_cy.cli.check import bounds, cases, command, forks, frameworks, kernels, processes, report, with_gpu
from convgrad_cy.cli.check.functions import FUNCTIONS
from convgrad_cy.cli.check.storage import STORAGES
from convgrad_cy.cli.check.tally import Tally

FAULTS = Path(__file__).parent / "check_faults"
SMALL = [case for case in cases.CASES if not case.is_large]
needs_threads = pytest.mark.skipif(not _repeat.has_openmp(), reason="this build has one thread")
BY_NAME = {function.name: function for function in FUNCTIONS}


def test_check(tmp_path):
    """The whole command: a row for each instruction set and type, and the same in JSON."""
    file = tmp_path / "report.json"
    process = start("check", "--json", file)
    assert (process.returncode, process.stderr) == (0, ""), process.stdout
    written = json.loads(file.read_text())
    assert written["passed"] and written["machine"]["convgrad_cy"] == cg.__version__
    for isa in cpu.available_isas():
        for kind in (*STORAGES, "fork"):
            assert re.search(rf"^{isa} +{kind} .* pass$", process.stdout, re.MULTILINE)
        named = [
            (record["row"], record["function"])
            for record in written["records"]
            if record["part"] == isa and "function" in record
        ]
        assert sorted(named) == sorted((kind, function) for kind in STORAGES for function in BY_NAME)
    assert all(row["failed"] == 0 and (row["checked"] or row["note"]) for row in written["records"])
    assert re.search(r"^passed: \d+ results", process.stdout, re.MULTILINE)
    assert "\r" not in process.stdout, "a progress bar in a file"


def test_a_wrong_kernel_is_found():
    """One wrong bit of float16 in the compiled kernel must fail the rows of its functions, and no others."""
    path = os.pathsep.join([str(FAULTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = start("check", variables={"CHECK_FAULT": "kernel", "PYTHONPATH": path})
    printed = process.stdout
    assert process.returncode == 1
    for isa in cpu.available_isas():
        rows = {kind: re.search(rf"^{isa} +{kind} .*", printed, re.MULTILINE)[0] for kind in (*STORAGES, "fork")}
        assert [kind for kind, row in rows.items() if row.endswith("FAIL")] == ["float16"]
        assert re.fullmatch(
            rf"{isa} +float16 +\d+ +\d+ +\d+/\d+ BAD +\d+/\d+ BAD +\d+/\d+ BAD +\d+  FAIL", rows["float16"]
        )
        assert re.search(
            rf"^FAIL {isa} float16: conv_backward_filter, kernel_3x3, NCX, integers: element", printed, re.M
        )
    assert re.search(r"^FAILED: \d+ of \d+ results are wrong", printed, re.MULTILINE)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_crash_is_found(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FAULTS), *sys.path])
    *before, last = processes.records("kernels", cpu.isa, CONVGRAD_CY_ISA=cpu.isa, CHECK_FAULT="crash")
    assert [record["row"] for record in before] == ["float16"] and before[0]["failed"] == 0
    assert (last["row"], last["told"]) == ("process", ["the process ended by SIGILL"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_wrong_forked_process_is_found(monkeypatch):
    assert forks.record(cpu.isa)["failed"] == 0
    right, here = cg.conv_transpose, os.getpid()

    def wrong(*arrays, **keywords):
        result = right(*arrays, **keywords)
        return result if os.getpid() == here else result + 1

    monkeypatch.setattr(cg, "conv_transpose", wrong)
    assert forks.record(cpu.isa)["told"] == ["conv_transpose gives other bits in a forked process"]


@pytest.mark.parametrize("storage", STORAGES.values(), ids=list(STORAGES))
def test_the_kernels_pass(storage):
    """In this process, and so with this instruction set."""
    records = [kernels.of_function(function, storage, SMALL) for function in FUNCTIONS]
    assert [record["told"] for record in records] == [[]] * len(FUNCTIONS)
    assert all(record["checked"] >= 2 * len(SMALL) for record in records)


def one_ulp(result):
    result.reshape(-1)[-1] = np.nextafter(result.reshape(-1)[-1], np.inf, dtype=result.dtype)
    return result


FAULTY = {
    "one bit": (one_ulp, "integers: element ("),
    "too large an error": (lambda result: result * np.float32(1 + 1e-4), "auto: element ("),
    "NaN that is lost": (np.nan_to_num, "nan in x reaches wrong elements of y"),
    "an exception": (lambda result: result[()]["name"], "IndexError: "),
    "threads": (lambda result: result + (cg.get_num_threads() == 3), "3 threads give other bits of y than 1"),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=needs_threads) if name == "threads" else name for name in FAULTY]
)
def test_a_wrong_function_is_found(fault, monkeypatch):
    spoil, text = FAULTY[fault]
    right = cg.conv
    algorithms = ("auto",) if fault == "too large an error" else ("auto", "direct")

    def wrong(*arrays, algorithm, **keywords):
        result = right(*arrays, algorithm=algorithm, **keywords)
        return spoil(result) if algorithm in algorithms else result

    monkeypatch.setattr(cg, "conv", wrong)
    used = [case for case in cases.CASES if case.is_large][:1] if fault == "threads" else SMALL
    record = kernels.of_function(BY_NAME["conv"], STORAGES["float32"], used)
    assert (record["failed"] and len(record["told"]) == 3) or fault == "threads"
    assert any(text in told for told in record["told"]), record["told"]


def test_every_family_is_reached():
    """The layers must reach each family of kernels of this instruction set."""
    found = set()
    for case in cases.CASES:
        for name in ("conv", "conv_backward_data", "conv_backward_filter"):
            function = BY_NAME[name]
            shapes = [getattr(case.shapes, letter) for letter in function.reads]
            made = {} if name == "conv" else {f"{function.makes}_shape": getattr(case.shapes, function.makes)}
            for dtype in ("float32", "float64"):
                found.add(cg.explain(name, shapes, dtype, **made, **case.problem.keywords).family)
    assert found == {family.__name__.rpartition(".")[2] for family in cpu.families.PREFERENCE}


@needs_threads
def test_several_threads_compute_the_large_layers():
    with cg.num_threads(3):
        for case in cases.CASES:
            threads = cg.explain("conv", (case.shapes.x, case.shapes.w), **case.problem.keywords).details["threads"]
            assert (threads > 1) == case.is_large, case.problem


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.problem.name)
def test_integers_are_exact_in_float32(case):
    tensors = cases.integers(case, True).tensors
    assert max(result.max() for result in case.results(tensors.map(np.abs))) < 2**24
    for letter in "xwy":
        ones = case.results(cases.Tensors(*(np.ones(shape) for shape in case.shapes)))
        assert getattr(ones, letter).max() <= case.terms(letter)


@pytest.mark.parametrize("storage", STORAGES.values(), ids=list(STORAGES))
def test_storage(storage):
    """Reading must invert storing for each pattern of 16 bits, and storing must round to the nearest number."""
    if storage.name == "int32":
        assert storage.store(np.array([2**32 + 5, -(2**31) - 1])).tolist() == [5, 2**31 - 1]
        return
    if storage.dtype.itemsize == 2:
        bits = np.arange(1 << 16, dtype=np.uint16)
        numbers = storage.read(bits.view(storage.dtype))
        again = storage.store(numbers).view(np.uint16)
        assert np.array_equal(again[~np.isnan(numbers)], bits[~np.isnan(numbers)])
        assert np.isnan(storage.read(again.view(storage.dtype)))[np.isnan(numbers)].all()
    half = storage.epsilon / 2
    exact = np.array([1 + half, 1 + 1.5 * half, 1 + 3 * half])
    if storage.name != "float64":
        assert storage.read(storage.store(exact)).tolist() == [1, 1 + 2 * half, 1 + 4 * half]
    assert storage.read(storage.store([storage.smallest]))[0] == storage.smallest > 0


def test_bounds():
    exact = np.array([4.0, 0.0])
    of = {name: bounds.allowed(STORAGES[name], "direct", exact, exact, 3) for name in STORAGES}
    assert of["float32"].tolist() == [16 * 2.0**-23, 0]
    assert of["float64"].tolist() == [16 * 2.0**-52, 0]
    assert of["int32"].tolist() == [0, 0]
    assert of["float16"][0] == pytest.approx(4 * 2.0**-11, rel=1e-2)
    assert of["bfloat16"][0] == pytest.approx(4 * 2.0**-8, rel=1e-2)
    assert bounds.allowed(STORAGES["float32"], "auto", exact, exact, 3).tolist() == [8e-5, 8e-5]


@pytest.mark.parametrize("wrong, failed", [({}, 0), ({"loss": 1.001}, 1), ({"loss": math.nan}, 1)])
def test_frameworks(wrong, failed):
    own = {"loss": np.array([1.0]), "gradient": np.array([[3.0, -2.0]])}
    ours = {name: array.copy() for name, array in own.items()}
    for name, value in wrong.items():
        ours[name][...] = value
    record = frameworks.record("PyTorch", "2.13", own, ours, 1)
    assert (record["checked"], record["failed"]) == (3, failed)
    assert frameworks.record("PyTorch", "2.13", own, own, 0)["told"] == ["no call was computed by convgrad_cy"]


@pytest.mark.torch
def test_pytorch():
    (record,) = processes.records("PyTorch", "PyTorch")
    assert record["checked"] > 5 and record["failed"] == 0 and "largest difference" in record["note"]


@pytest.mark.jax
def test_jax():
    (record,) = processes.records("JAX", "JAX")
    assert record["checked"] > 5 and record["failed"] == 0 and "largest difference" in record["note"]


@pytest.mark.parametrize("part", ["PyTorch", "JAX", "GPU"])
def test_a_missing_framework_is_no_failure(part, tmp_path):
    """An installed package that cannot be imported counts as missing, too."""
    for name in ("torch", "jax", "cupy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('none')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", path.split(os.pathsep))
        (record,) = processes.records(part, part)
    assert (record["checked"], record["failed"], record["note"]) == (0, 0, "not installed")


def test_a_silent_process_is_ended(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(processes, "PATIENCE", 3)
    (record,) = processes.records("PyTorch", "PyTorch")
    assert record["told"] == ["no answer for 3 seconds"]


def test_a_forked_process_without_an_answer(monkeypatch):
    monkeypatch.setattr(forks, "_bits", lambda: [b"12345678"] * len(FUNCTIONS))
    monkeypatch.setattr(forks, "_answer", lambda: b"12345678" * (len(FUNCTIONS) - 1))
    assert forks.record("any")["told"] == ["conv_transpose_backward gives no answer in a forked process"]


def test_the_first_wrong_element_is_named():
    tally = Tally("x86_64_v4", "float16")
    expected = np.zeros((2, 3))
    found = expected.copy()
    found[1, 0] = found[1, 2] = 0.5
    tally.compare("conv", found, expected, 0.25)
    text = "conv: element (1, 0) is 0.5, must be 0 with an error of at most 0.2; 2 of 6 elements are wrong"
    assert tally.record() == {
        "part": "x86_64_v4", "row": "float16", "checked": 1, "failed": 1, "told": [text],
    }  # fmt: skip
    tally.compare("conv", np.full((2, 3), np.nan), expected, np.inf)
    assert tally.failed == 2


def test_rows_of_a_process_that_ends_early(monkeypatch, capsys):
    """Records without the others of their row must be printed, too."""
    row = Tally("isa", "float16").record(function="conv", column="conv", threads=0)
    lost = Tally("isa", "process")
    lost.check(False, "the process ended by SIGSEGV")
    monkeypatch.setattr(command, "_parts", lambda: [("isa", "kernels", {})])
    monkeypatch.setattr(processes, "records", lambda *_, **__: iter([row, row, lost.record()]))
    assert command.check() is False
    printed = capsys.readouterr().out
    assert re.search("^isa +float16 ", printed, re.MULTILINE) and "FAIL isa process: the process ended" in printed


@pytest.mark.parametrize("file", ["", "missing/report.json"])
def test_a_bad_file_is_refused_first(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert status_of("check", "--json", file) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err, "--json cannot be written to")


def test_machine_names_each_gpu(monkeypatch):
    monkeypatch.setattr(report, "installation", lambda: [("GPU", "one"), ("GPU", "two"), ("threads", 2)])
    assert report.machine()["GPU"] == "one; two" and report.machine()["threads"] == "2"
    assert report.machine()["processor"] and report.machine()["system"]


def test_gpu_needs_ml_dtypes_for_bfloat16(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert with_gpu._of_type(None, STORAGES["bfloat16"])["note"] == "not checked: ml_dtypes is not installed"


@pytest.mark.checkout
@pytest.mark.parametrize("template", ["wrong_result", "installation", "slow"])
def test_the_issue_templates_ask_for_it(template):
    folder = Path(__file__).parents[2] / ".github/ISSUE_TEMPLATE"
    if not folder.exists():
        pytest.skip("a source distribution has no templates of issues")
    text = (folder / f"{template}.yml").read_text(encoding="utf-8")
    assert "label: Output of `python -m convgrad_cy check`" in text and "render: text" in text
    assert "{" not in text and "\t" not in text  # plain YAML, which needs no parser to be read
