"""``bench.extremes --without``: the other route of a row, the comparison of both, and the table of findings."""

import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import both_ways, extremes, results, routes, suites, verify, without
from bench.peers.convgrad_cy import Library, arrays_of
from convgrad_cy import cpu
from convgrad_cy.cpu import families
from convgrad_cy.cpu.direct import forms
from convgrad_cy.cpu.machine import Machine

#: A row of suites.txt that takes each family and form on ``wide_vectors``.
TAKEN = {
    "overlaps": ("sincnet", "dgrad", "NXC", "float32"),
    "columns": ("maps_of_2_taps_7", "dgrad", "NXC", "float32"),
    "long_sums": ("volume_8_stride8", "fprop", "NCX", "float64"),
    "exchanged": ("maps_of_2_taps_7", "fprop", "NCX", "float32"),
    "winograd": ("decoder_32", "wgrad", "NCX", "float32"),
    "small_groups": ("tiny_depthwise", "fprop", "NXC", "float32"),
    "rows": ("tiny_digits", "dgrad", "NCX", "float32"),
    "packed": ("tiny_1x1_of_1x1", "fprop", "NCX", "float32"),
    "phases": ("tiny_transposed", "dgrad", "NCX", "float32"),
}
#: Both kinds of layers, all kernels and layouts.
CALLS = [
    *TAKEN.values(),
    ("tiny_transposed", "fprop", "NXC", "float32"),
    ("tiny_transposed", "wgrad", "NXC", "float64"),
    ("tiny_lenet_2", "wgrad", "NCX", "int32"),
    ("tiny_lenet_2", "dgrad", "NXC", "float16"),
    ("tiny_lenet_2", "fprop", "NCX", "bfloat16"),
]


@pytest.fixture
def wide_vectors(monkeypatch):
    """Plan for one fixed machine on every machine."""
    monkeypatch.setattr(cpu, "machine", lambda *count: Machine(6, 256, 64, False, 32 << 20, threads=2))


def row_of(layer, kernel, layout, dtype):
    (row,) = suites.rows(suites.NAMES, (kernel,), (layout,), (dtype,), f"^{layer}$")
    return row


def route_of(*described):
    return routes.Route.of(routes.task_of(row_of(*described)))


def tensors_of(row):
    return both_ways.Tensors(row.case)


def test_all_families_and_forms_can_be_left_out_but_the_last():
    assert [*routes.NAMES] == [*TAKEN]
    assert [*routes.FAMILIES.values()] == [*families.PREFERENCE] and routes.LAST == "direct"
    assert [form.name for form in routes.FORMS.values()] == [form.name for form in forms.PREFERENCE[:-1]]


@pytest.mark.tuning
@pytest.mark.parametrize("name", TAKEN)
def test_the_other_route_is_without_it(name, wide_vectors):
    """The row must take the name, the other route must not, and a row that never takes it must have no other route."""
    usual = route_of(*TAKEN[name])
    assert name in (usual.family, usual.form)
    ((left, other),) = usual.others([name])
    assert left == name and name not in (other.family, other.form)
    assert (other.family, other.numbers) != (usual.family, usual.numbers)
    assert route_of("resnet50_conv1", "wgrad", "NCX", "float32").others([name]) == []


def test_no_row_keeps_a_form_that_is_left_out(wide_vectors):
    """No row may keep a form: layers of all suites with any channels, taps and phases, and pointwise ones."""
    pointwise = suites.parse("[pointwise]\n" + 'mb8ic3ih64oc64kh1n"pointwise"')
    for row in suites.rows() + suites.rows(("pointwise",), layers=pointwise):
        usual = routes.Route.of(routes.task_of(row))
        if usual.form:
            assert usual.without(usual.form).form != usual.form


@pytest.mark.tuning
def test_a_family_is_left_to_one_behind_it(wide_vectors):
    order = [*routes.FAMILIES]
    for name in order[:-1]:
        assert order.index(route_of(*TAKEN[name]).without(name).family) > order.index(name)


@pytest.mark.parametrize("described", CALLS, ids=" ".join)
def test_the_usual_route_is_that_of_the_call(described):
    """The usual route must have the bits of the call: the task is the one that the public function plans."""
    if "bfloat16" in described:
        pytest.importorskip("ml_dtypes")
    row = row_of(*described)
    operands = tensors_of(row).operands
    *inputs, out = arrays_of(row.case, row.kernel, *operands)
    both_ways.Run(route_of(*described), inputs, out)()
    called = Library(None).operation(row.case, row.kernel, *operands)()
    assert out.tobytes() == called.tobytes() and np.isfinite(out.astype(np.float64)).all()


@pytest.mark.parametrize("name", TAKEN)
def test_both_routes_are_right_and_timed(name):
    row, usual = row_of(*TAKEN[name]), route_of(*TAKEN[name])
    found = both_ways.compared(row, tensors_of(row), usual, usual.without(name), 0.001)
    assert found.keys() == {"seconds", "other_seconds"} and all(0 < value < 5 for value in found.values())


class Spoiled:
    """A route whose result is right but for one element, or that does not run."""

    def __init__(self, route, error=None, add=1, family="direct"):
        self.route, self.error, self.add, self.family = route, error, add, family

    def ready(self):
        if self.error:
            raise self.error
        self.work = self.route.ready()
        return self

    def run(self, *arrays):
        self.work.run(*arrays)
        arrays[-1].reshape(-1)[-1] += self.add


def test_wrong_results_and_failures_have_no_time():
    row, usual = row_of(*TAKEN["rows"]), route_of(*TAKEN["rows"])
    compared = (row, tensors_of(row))
    found = both_ways.compared(*compared, usual, Spoiled(usual), 0.001)
    assert [*found] == ["wrong"] and found["wrong"].startswith("other route: relative error ")
    assert [*both_ways.compared(*compared, Spoiled(usual), usual, 0.001)] == ["wrong"]
    found = both_ways.compared(*compared, usual, Spoiled(usual, MemoryError("no memory")), 0.001)
    assert found == {"failed": "other route: MemoryError: no memory"}


def long_sum(family):
    """A row with sums of 40,000 terms, its tensors, and a result that is off by more than the tolerance allows."""
    (layer,) = suites.parse('[long]\nmb1ic100ih20oc1kh20n"long"')
    row = suites.Row(layer, layer.case("NCX", "float32"), "fprop")
    tensors = both_ways.Tensors(row.case)
    route = routes.Route.of(routes.task_of(row))
    error = 3e-5 * np.abs(tensors.expected("fprop")).max()
    return row, tensors, Spoiled(route, add=error, family=family)


def test_sums_of_many_terms_may_be_off_by_their_rounding():
    """A plain sum may be off by its rounding, within the contract, but not by more. Winograd's may not."""
    row, tensors, route = long_sum("direct")
    assert "seconds" in both_ways.compared(row, tensors, route, route, 0.001)
    row, tensors, route = long_sum("winograd")
    assert "relative error 3" in both_ways.compared(row, tensors, route, route, 0.001)["wrong"]
    row, tensors, route = long_sum("direct")
    route.add = 1.1 * 40001 * 2.0**-23 * np.abs(tensors.operands[0] * tensors.operands[1]).sum()
    assert "wrong" in both_ways.compared(row, tensors, route, route, 0.001)


@pytest.mark.parametrize("kernel, terms", (("fprop", 2 * 9), ("dgrad", 3 * 9), ("wgrad", 2 * 9)))
def test_bound_of_a_plain_sum(kernel, terms):
    """The bound must be (K + 1)·eps·S, with two groups, 2 channels of x and 3 of y in each, 3×3 taps and positions."""
    (layer,) = suites.parse('[bound]\nmb2g2ic4ih5oc6kh3n"bound"')
    case = layer.case("NCX", "float64")
    zeros, sums = np.zeros(case.shape(kernel)), np.full(case.shape(kernel), 5.0)
    result = zeros.copy()
    for part, right in ((0.99, True), (1.01, False), (np.nan, False)):
        result.flat[-1] = part * (terms + 1) * 2.0**-52 * 5
        assert verify.is_within_rounding(case, kernel, result, zeros, sums) == right


def clock(monkeypatch, *times):
    """Let the calls 0 and 1 take these times, one after the other; returns the list of calls, which grows."""
    made, left = [], [iter(each) for each in times]

    def shortest(call, seconds):
        made.append(call)
        return next(left[call]), 1

    monkeypatch.setattr(both_ways, "shortest", shortest)
    return made


def test_routes_take_turns(monkeypatch):
    made = clock(monkeypatch, [4.0, 2.0, 3.0, 5.0], [3.0, 3.0, 2.5, 3.0])
    assert both_ways.in_turn((0, 1), 1.0) == [2.0, 2.5]
    assert made == [0, 1, 1, 0, 0, 1, 1, 0]


def test_a_clearly_slower_route_is_not_timed_any_longer(monkeypatch):
    made = clock(monkeypatch, [1.0, 1.0], [2.1, 2.2])
    assert both_ways.in_turn((0, 1), 1.0) == [1.0, 2.1]
    assert made == [0, 1, 1, 0]


@pytest.mark.parametrize("again, expected", ((1.0, 1.0), (1.9, 1.9)))
def test_a_finding_is_timed_twice(again, expected, monkeypatch):
    """A row that was slow by chance must be no finding."""
    turns = iter([[2.0, 1.0], [again, 1.1]])
    monkeypatch.setattr(both_ways, "in_turn", lambda calls, seconds: next(turns))
    row, usual = row_of(*TAKEN["rows"]), route_of(*TAKEN["rows"])
    found = both_ways.compared(row, tensors_of(row), usual, usual, 0.001)
    assert found == {"seconds": expected, "other_seconds": 1.0} and next(turns, None) is None


def made_up(layer, left, seconds, other, **others):
    where = {"suite": "tiny", "layer": layer, "kernel": "dgrad", "layout": "NCX", "dtype": "float32"}
    times = {} if others else {"seconds": seconds, "other_seconds": other}
    return {**where, "without": left, "usual": left, "other": "direct", **times, **others}


def test_findings():
    rows = [
        made_up("a", "winograd", 1e-3, 4e-3),
        made_up("b", "exchanged", 1.16e-3, 1e-3),
        made_up("c", "exchanged", 1.15e-3, 1e-3),
        made_up("d", "exchanged", 5e-3, 1e-3),
        made_up("e", "winograd", 0, 0, wrong="other route: relative error 1"),
    ]
    assert [row["layer"] for row in without.findings(rows)] == ["d", "b"]
    assert [row["layer"] for row in without.troubles(rows)] == ["e"]
    lines = without.conclusion(rows)
    assert lines[1].split() == ["winograd", "2", "0", "4.00", "4.00", "4.00"]
    assert lines[2].split() == ["exchanged", "3", "2", "0.53", "0.20", "0.87"]
    assert lines[4] == "wrong or failed:" and lines[5].endswith("other route: relative error 1")
    assert lines[7] == "2 findings in 5 comparisons: another route is more than 1.15 times faster"
    assert [line.split()[0] for line in lines[8:]] == ["d", "b"]
    assert lines[8].split()[-4:] == ["5.000", "1.000", "5.00", "!"] and without.line(rows[0]).endswith("0.25")


def found_by(path, processes):
    argv = ["--without=all", "--sets=tiny,random", "--count=2", "--match=tiny_(lenet_2|depthwise)|random"]
    argv += ["--op=fprop,dgrad", "--seconds=0.001", f"--processes={processes}", f"--json={path}"]
    assert extremes.main(argv) == 0
    return results.read(path)


@pytest.mark.parametrize("processes", (1, 2))
def test_command(processes, tmp_path, capsys):
    """Each row that takes another family or form than the last one must be there, in the order of the layers."""
    if processes > len(extremes.processors()):
        pytest.skip("needs two processors")
    data = found_by(tmp_path / "it.json", processes)
    rows = suites.rows(extremes.SETS, ("fprop", "dgrad"), layers=extremes.layers_of(options_of("tiny,random", 2)))
    expected = [
        (row.case.name, row.kernel, row.case.layout, name)
        for row in rows
        if row.case.name in ("tiny_lenet_2", "tiny_depthwise", "random_0_0", "random_0_1")
        for name, _ in routes.Route.of(routes.task_of(row)).others(routes.NAMES)
    ]
    assert [tuple(row[key] for key in ("layer", "kernel", "layout", "without")) for row in data["rows"]] == expected
    assert {row["layer"].split("_")[0] for row in data["rows"]} == {"tiny", "random"}
    assert data["findings"] == len(without.findings(data["rows"])) and data["sets"] == ["tiny", "random"]
    printed = capsys.readouterr().out
    assert f"{data['findings']} findings in {len(expected)} comparisons" in printed
    assert all(without.line(row)[:80] in printed for row in data["rows"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the command is stopped by a signal")
def test_an_interrupted_run_keeps_its_rows(tmp_path):
    command = [sys.executable, "-m", "bench.extremes", "--without=all", "--sets=random", "--seconds=0.001"]
    with subprocess.Popen(
        [*command, f"--json={tmp_path / 'it.json'}"],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not process.stdout.readline().startswith(b"random_"):
            pass
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)
    data = results.read(tmp_path / "it.json")
    assert process.returncode == 1 and data["stopped"] == "interrupted" and b"interrupted\n" in printed
    assert data["rows"] and len({row["layer"] for row in data["rows"]}) < 500


class Crashed:
    def __init__(self, *arguments):
        pass

    def map(self, function, layers):
        yield [made_up("a", "winograd", 2e-3, 1e-3)]
        raise BrokenProcessPool

    def shutdown(self, cancel_futures):
        pass


def test_a_crash_keeps_the_rows_before_it(monkeypatch, capsys):
    monkeypatch.setattr(without, "ProcessPoolExecutor", Crashed)
    options = extremes.arguments(["--without", "all"])[1]
    data = without.run(extremes.layers_of(options)[:2], [0], options)
    assert len(data["rows"]) == data["findings"] == 1
    assert (
        data["stopped"] == "a process crashed; 1 rows were measured before"
        and data["stopped"] in capsys.readouterr().out
    )


def options_of(sets, count):
    return extremes.arguments(["--sets", sets, "--count", str(count)])[1]


def test_arguments(capsys):
    assert extremes.arguments(["--without", "all"])[1].without == [*routes.NAMES]
    assert extremes.arguments(["--without", "exchanged,phases"])[1].without == ["exchanged", "phases"]
    names = {layer.suite for layer in extremes.layers_of(options_of("suites,random", 1))}
    assert names == {*suites.NAMES, "random"}
    for argv, message in (
        (["--without", "direct"], "'direct' is none of overlaps, "),
        (["--without", "all", "--peers", "torch"], "--peers must be left out with --without"),
    ):
        with pytest.raises(SystemExit):
            extremes.arguments(argv)
        assert message in capsys.readouterr().err
