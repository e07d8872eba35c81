"""``python -m convgrad_cy info`` and ``run``, and the errors of every command for bad input."""

import json
import os
import re
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from commands import assert_one_line, start, status_of

import convgrad_cy as cg
from convgrad_cy import _repeat
from convgrad_cy.cli import info
from convgrad_cy.cli.main import main
from convgrad_cy.cli.operations import OPERATIONS


def integers(*shape):
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(np.float32)


X, W, DY = integers(2, 4, 6, 5), integers(6, 2, 3, 3), integers(2, 6, 3, 5)
GEOMETRY = {"stride": [2, 1], "padding": [[1, 0], [1, 1]], "groups": 2}
#: Operation -> arrays in the file and attributes. The transposed convolution computes x from dy.
CALLS = {
    "conv": ({"x": X, "w": W}, {}),
    "conv_backward_data": ({"dy": DY, "w": W}, {"x_shape": X.shape}),
    "conv_backward_filter": ({"x": X, "dy": DY}, {"w_shape": W.shape}),
    "conv_backward": ({"dy": DY, "x": X, "w": W}, {}),
    "conv_transpose": ({"x": DY, "w": W}, {"output_padding": [0, 0]}),
    "conv_transpose_backward_data": ({"dy": X, "w": W}, {}),
    "conv_transpose_backward_filter": ({"x": DY, "dy": X}, {"w_shape": W.shape}),
    "conv_transpose_backward": ({"dy": X, "x": DY, "w": W}, {"output_shape": X.shape}),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory in which main() runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# info


def test_info():
    process = start("info")
    assert (process.returncode, process.stderr) == (0, "")
    lines = dict(re.split(r"\s+", line, maxsplit=1) for line in process.stdout.splitlines())
    assert list(lines) == [
        "convgrad_cy",
        "Python",
        "ISA",
        "caches",
        "threads",
        "scratch",
        "OpenMP",
        "runtimes",
        "dtypes",
        "GPU",
    ]
    assert lines["convgrad_cy"] == cg.__version__
    assert np.__version__ in lines["Python"]
    chosen, available = re.fullmatch(r"(\S+) \(available: (.+)\)", lines["ISA"]).groups()
    assert chosen in available.split(", ")
    assert re.fullmatch(r"L1 \d+ KiB, L2 \d+ KiB, L3 \d+ KiB", lines["caches"])
    assert int(lines["threads"].partition(":")[0]) >= 1
    assert lines["OpenMP"]
    if _repeat.has_openmp() and sys.platform.startswith("linux"):
        assert re.fullmatch(r"/\S+/lib(gomp|omp|iomp5)\S*", lines["runtimes"])
    assert re.sub(r" \(.*?\)", "", lines["dtypes"]) == "float16, bfloat16, float32, float64, int32"
    if find_spec("cupy") is None:
        assert lines["GPU"] == "none: CuPy is not installed"


MAPS = """7f01d2000000-7f01d2001000 r-xp 00000000 00:2a 15 {}
7f01d2001000-7f01d2002000 rw-p 00001000 00:2a 15 {}
7f01d2002000-7f01d2003000 rw-p 00000000 00:00 0
7f01d2003000-7f01d2004000 r-xp 00000000 00:2a 17 /usr/lib/libompi.so.40
7f01d2004000-7f01d2005000 rw-p 00000000 00:00 0 [heap]
"""


def test_runtimes(tmp_path):
    """Each runtime must be listed once, with a warning if there are several."""
    maps = tmp_path / "maps"
    gnu, wheel, llvm = "/usr/lib/libgomp.so.1.0.0", "/a/torch/lib/libgomp-a34b3233.so.1", "/usr/lib/llvm/libomp.so.5"
    maps.write_text(MAPS.format(gnu, gnu))
    assert info.runtimes(maps) == gnu
    maps.write_text(MAPS.format("/usr/lib/libc.so.6", "/usr/lib/libomptarget.so.1"))
    assert info.runtimes(maps) == "none"
    maps.write_text(MAPS.format(gnu, wheel) + MAPS.format(llvm, "/b/libiomp5.so"))
    assert info.runtimes(maps).startswith(f"{wheel}, /b/libiomp5.so, {gnu}, {llvm} - WARNING: more than one")
    assert info.runtimes(tmp_path / "nothing") == "unknown: this system does not list them"


def test_info_without_ml_dtypes(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert main(["info"]) == 0
    assert "bfloat16 (no arrays of it: import of ml_dtypes halted" in capsys.readouterr().out


def test_info_with_a_broken_cupy(monkeypatch, capsys, tmp_path):
    """The reason of the failed import must be one line of the report, not a traceback."""
    (tmp_path / "cupy.py").write_text("raise ImportError('no CUDA driver\\nsecond line')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert main(["info"]) == 0
    assert "none: CuPy is installed, but no CUDA driver second line\n" in capsys.readouterr().out


# run


def test_every_function_can_be_run():
    core = {name for name in OPERATIONS if "." not in name}  # test_run_shims.py has the others
    assert set(CALLS) == core == {name for name in cg.__all__ if name.startswith("conv")}


@pytest.mark.parametrize("name", CALLS)
def test_run_equals_the_call(name, folder, capsys):
    arrays, attributes = CALLS[name]
    attributes = GEOMETRY | attributes
    np.savez("in.npz", **arrays, other=np.zeros(3))
    (folder / "attributes.json").write_text(json.dumps(attributes))
    assert status_of("run", name, "--attrs", "attributes.json", "in.npz", "out") == 0
    expected = getattr(cg, name)(*arrays.values(), **attributes)
    expected = dict(zip(OPERATIONS[name].results, expected if type(expected) is tuple else [expected], strict=True))
    with np.load("out") as file:  # the given name, without an ending from NumPy
        assert file.files == list(expected)
        for result, array in expected.items():
            assert file[result].dtype == array.dtype
            np.testing.assert_array_equal(file[result], array)
    lines = [f"{result}: float32 {array.shape} -> out\n" for result, array in expected.items()]
    assert capsys.readouterr().out == "".join(lines)
    assert sorted(os.listdir()) == ["attributes.json", "in.npz", "out"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
def test_run_keeps_the_dtype(dtype, folder):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    x, w = X.astype(dtype), W.astype(dtype)[:, :, :1]
    np.savez("in.npz", **{name: a.view("V2") if a.dtype.name == "bfloat16" else a for name, a in (("x", x), ("w", w))})
    (folder / "attributes.json").write_text('{"groups": 2}')
    process = start("run", "conv", "--attrs", "attributes.json", "in.npz", "out.npz")
    assert (process.returncode, process.stderr) == (0, "")
    expected = cg.conv(x, w, groups=2)
    with np.load("out.npz") as file:
        np.testing.assert_array_equal(file["y"].view(expected.dtype), expected)


def test_run_replaces_an_older_result_and_keeps_a_link(folder):
    np.savez("in.npz", x=X, w=W[:, :1].repeat(4, 1))
    (folder / "real.npz").write_bytes(b"older")
    os.symlink("real.npz", "out.npz")
    assert status_of("run", "conv", "in.npz", "out.npz") == 0
    assert os.path.islink("out.npz")
    with np.load("real.npz") as file:
        assert file["y"].shape == (2, 6, 4, 3)


GOOD = {"x": X, "w": W}
#: Faults: (operation, arrays or the bytes of IN.npz, text of the JSON file or None, part of the message).
BAD = {
    "unknown operation": ("deconv", GOOD, None, "invalid choice: 'deconv'"),
    "empty file": ("conv", b"", None, "'in.npz' is not an .npz file"),
    "text file": ("conv", b"x = 1\n", None, "'in.npz' is not an .npz file"),
    "array missing": ("conv", {"x": X}, None, "has no array 'w'; it has x"),
    "no arrays": ("conv", {}, None, "has no array 'x'; it has none"),
    "object array": ("conv", {"x": np.array([None]), "w": W}, None, "allow_pickle=False"),
    "wrong dtype": ("conv", {"x": X.astype(np.int8), "w": W}, None, "int8"),
    "text array": ("conv", {"x": np.array("text"), "w": W}, None, "conv: "),
    "two dtypes": ("conv", {"x": X.astype(np.float64), "w": W}, None, "float64"),
    "scalar": ("conv", {"x": np.float32(1), "w": W}, None, "conv: "),
    "channels disagree": ("conv", GOOD, None, "conv: "),
    "not JSON": ("conv", GOOD, "{stride: 2}", "cannot read attributes from 'attributes.json'"),
    "not UTF-8": ("conv", GOOD, "\udcff", "cannot read attributes from 'attributes.json'"),
    "too deep": ("conv", GOOD, "[" * 100_000, "cannot read attributes from 'attributes.json'"),
    "not an object": ("conv", GOOD, "[2]", "must be a JSON object"),
    "name twice": ("conv", GOOD, '{"stride": 1, "stride": 2}', "a name occurs twice"),
    "unknown attribute": ("conv", GOOD, '{"strides": 2}', "conv has no attribute 'strides'; it has stride, "),
    "array as attribute": ("conv", GOOD, '{"x": 2}', "conv has no attribute 'x'"),
    "out as attribute": ("conv", GOOD, '{"out": [1]}', "conv has no attribute 'out'"),
    "attribute missing": ("conv_backward_data", {"dy": DY, "w": W}, None, "needs the attribute 'x_shape'"),
    "attribute of a wrong type": ("conv", GOOD, '{"groups": 2, "stride": "two"}', "conv: "),
    "attribute null": ("conv", GOOD, '{"groups": null}', "conv: "),
    "attribute of a wrong value": ("conv", GOOD, '{"groups": 2, "stride": 0}', "conv: "),
    "attribute too large": ("conv", GOOD, '{"groups": 2, "padding": 1' + "0" * 30 + "}", "conv: "),
    "attribute not finite": ("conv", GOOD, '{"groups": 2, "stride": Infinity}', "conv: "),
    "result too large": (
        "conv_backward_data",
        {"dy": np.zeros((1, 1, 1), np.int32), "w": np.zeros((1, 1, 1), np.int32)},
        '{"x_shape": [1, 1, 1000000000000000], "stride": 1000000000000000}',
        "conv_backward_data: ",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, folder, capsys):
    name, arrays, attributes, said = BAD[case]
    if isinstance(arrays, bytes):
        (folder / "in.npz").write_bytes(arrays)
    else:
        np.savez("in.npz", **arrays)
    options = []
    if attributes is not None:
        (folder / "attributes.json").write_bytes(attributes.encode("utf-8", "surrogateescape"))
        options = ["--attrs", "attributes.json"]
    (folder / "out.npz").write_bytes(b"older")
    before = sorted(os.listdir())
    assert status_of("run", name, *options, "in.npz", "out.npz") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err, said)
    assert (folder / "out.npz").read_bytes() == b"older"
    assert sorted(os.listdir()) == before


def test_any_damage_to_a_file_is_bad_input(folder, capsys):
    """A damaged archive, cut short or with changed bytes, must be refused or give a result, but never a traceback."""
    np.savez_compressed("good.npz", x=X, w=W[:, :1].repeat(4, 1))
    good = (folder / "good.npz").read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        bad = bytearray(good)
        for position in random.integers(0, len(bad), 3):
            bad[position] = random.integers(256)
        (folder / "in.npz").write_bytes(bad[: random.integers(1, 2 * len(bad))])
        status = status_of("run", "conv", "in.npz", "out.npz")
        error = capsys.readouterr().err
        assert status in (0, 2)
        if status == 2:
            refused += 1
            assert_one_line(error, "convgrad_cy run")
    assert refused > 100


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["run", "conv", "missing.npz", "out.npz"], "cannot read arrays from 'missing.npz': No such file"),
        (["run", "conv", ".", "out.npz"], "'.' must be a plain file, not a folder, a pipe or a device"),
        (["run", "conv", "array.npy", "out.npz"], "'array.npy' is not an .npz file but an .npy file"),
        (["run", "conv", "--attrs", "missing.json", "in.npz", "out.npz"], "from 'missing.json': No such file"),
        (["run", "conv", "in.npz", "missing/out.npz"], "cannot write 'missing/out.npz': No such file"),
        (["run", "conv", "in.npz", "."], "cannot write '.': not a plain file"),
        (["run", "conv", "in.npz", "/dev/null"], "cannot write '/dev/null': not a plain file"),
        (["run", "conv", "in.npz", "./in.npz"], "'./in.npz' is also an input"),
        (["run", "conv", "in.npz", "\0"], "cannot write"),
        (["run", "conv", "in.npz"], "the following arguments are required: OUT.npz"),
        (["run", "conv", "in.npz", "out.npz", "--stride", "2"], "unrecognized arguments: --stride 2"),
        (["demo", "--epochs", "0"], "must be at least 1, not 0"),
        (["demo", "--seed", "one"], "invalid whole number value: 'one'"),
        ([], "the following arguments are required: COMMAND"),
        (["train"], "invalid choice: 'train'"),
    ],
)
def test_bad_command_line(arguments, said, folder, capsys):
    np.savez("in.npz", x=X, w=W[:, :1].repeat(4, 1))
    np.save("array.npy", X)
    before = (folder / "in.npz").read_bytes()
    assert status_of(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err, said)
    assert sorted(os.listdir()) == ["array.npy", "in.npz"]
    assert (folder / "in.npz").read_bytes() == before


def test_bad_input_of_a_process(folder):
    """A shell must see the status and the output that the tests above see in this process."""
    process = start("run", "conv", "missing.npz", "out.npz")
    assert (process.returncode, process.stdout) == (2, "")
    assert_one_line(process.stderr, "No such file")


def test_a_failed_write_leaves_nothing(folder, capsys, monkeypatch):
    np.savez("in.npz", x=X, w=W[:, :1].repeat(4, 1))
    (folder / "out.npz").write_bytes(b"older")

    def full_disk(file, **arrays):
        file.write(b"half a result")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    assert status_of("run", "conv", "in.npz", "out.npz") == 2
    assert_one_line(capsys.readouterr().err, "cannot write 'out.npz': No space left on device")
    assert (folder / "out.npz").read_bytes() == b"older" and sorted(os.listdir()) == ["in.npz", "out.npz"]


def test_bfloat16_without_ml_dtypes(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    np.savez("in.npz", x=X.astype(np.float16).view("V2"), w=W)
    assert status_of("run", "conv", "in.npz", "out.npz") == 2
    assert_one_line(capsys.readouterr().err, "is bfloat16, which needs ml_dtypes")
