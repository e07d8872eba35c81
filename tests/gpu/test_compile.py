"""``python -m convgrad_cy compile``: later calls of the same layers compile nothing."""

import sys

import fake_cupy
import numpy as np
import pytest
from sim.executor import COMPILER

import convgrad_cy as cg
from convgrad_cy.cli import compile as compiling
from convgrad_cy.cli.main import main
from convgrad_cy.gpu import compiler, cubins, work
from convgrad_cy.gpu.known import GPUS

LAYER = "mb2ic16ih9oc24kh3ph1"


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    fake_cupy.install(monkeypatch)
    return sys.modules["cupy"]


def status_of(*arguments):
    try:
        return main(["compile", *map(str, arguments)])
    except SystemExit as error:
        return error.code


def assert_refused(capsys, said, *arguments):
    assert status_of(*arguments) == 2
    text = capsys.readouterr().err
    assert text.startswith("convgrad_cy compile: error: ") and text.count("\n") == 1 and said in text


def files():
    return sorted(path.name for path in cubins.folder().iterdir())


def called(name, shapes, dtype, **keywords):
    """The new texts that a call compiles in a new process."""
    work._MODULES.clear()
    work._function.cache_clear()
    before = len(fake_cupy.compiled)
    getattr(cg, name)(*(fake_cupy.array(np.ones(shape, dtype)) for shape in shapes), **keywords)
    return fake_cupy.compiled[before:]


@pytest.mark.simulator
@pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")
@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("last", (False, True))
def test_calls_find_their_kernels(dtype, last):
    formats = ("--data-format", "NXC", "--filter-format", "XIO") if last else ()
    assert status_of("--arch", 90, "--layers", LAYER, "--dtype", dtype, *formats) == 0
    x, w, y = (2, 16, 9, 9), (24, 16, 3, 3), (2, 24, 9, 9)
    keywords = {"padding": 1}
    if last:
        x, w, y = (2, 9, 9, 16), (3, 3, 16, 24), (2, 9, 9, 24)
        keywords |= {"data_format": "NXC", "filter_format": "XIO"}
    assert fake_cupy.compiled
    assert called("conv", (x, w), dtype, **keywords) == []
    assert called("conv_backward_data", (y, w), dtype, x_shape=x, **keywords) == []
    assert called("conv_backward_filter", (x, y), dtype, w_shape=w, **keywords) == []
    assert called("conv_backward", (y, x, w), dtype, **keywords) == []


@pytest.mark.simulator
@pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")
def test_a_transposed_convolution_finds_its_kernels():
    arguments = ("--layers", "mb2ic6ih8oc4kh4sh2ph1", "--function", "conv_transpose")
    assert status_of("--arch", 90, *arguments) == 0
    shapes = (2, 6, 8, 8), (6, 4, 4, 4)
    assert called("conv_transpose", shapes, "float32", stride=2, padding=1) == []
    own = {"w_shape": shapes[1], "stride": 2, "padding": 1}
    assert called("conv_transpose_backward_filter", (shapes[0], (2, 4, 16, 16)), "float32", **own) != []


def test_kernels_that_are_there_are_not_compiled_again(capsys):
    layers = LAYER, "mb32ic64ih56oc64kh3ph1"  # warpgroups compute the second one
    arguments = ("--arch", "sm_80", "9.0", "--layers", *layers, "--dtype", "float32", "bfloat16")
    assert status_of(*arguments) == 0
    count = len(fake_cupy.compiled)
    assert count == len(files()) > 4 and len(set(fake_cupy.compiled)) > 4
    assert {name.partition("-")[0] for name in files()} == {"sm_80", "sm_90", "sm_90a"}
    assert capsys.readouterr().out == (
        f"compiled {count} of {count} kernels with NVRTC 13.0\nfolder: {cubins.folder()}\n"
    )
    (cubins.folder() / files()[0]).write_bytes(b"damaged")
    assert status_of(*arguments) == 0
    assert capsys.readouterr().out.startswith(f"compiled 1 of {count} kernels")
    assert status_of("--arch", 80, "--layers", LAYER) == 0
    assert capsys.readouterr().out.startswith("compiled 0 of ")


def test_layers_in_a_file(tmp_path):
    (tmp_path / "layers").write_text(f"# a network\n{LAYER}\n\nmb1ic4iw9oc4kw3 # its head\n")
    assert status_of("--arch", 75, "--layers", f"@{tmp_path / 'layers'}") == 0
    from_file = files()
    assert status_of("--arch", 75, "--layers", LAYER, "mb1ic4iw9oc4kw3") == 0
    assert files() == from_file


def test_every_gpu_of_an_architecture_is_planned_for(monkeypatch):
    """Plans depend on the number of multiprocessors, so each known GPU must be asked."""
    seen = []
    monkeypatch.setattr(compiling, "gpu_tasks", lambda *arguments, **_: seen.extend(arguments[3]) or [])
    assert status_of("--arch", 90, "--layers", LAYER, "--function", "conv") == 0
    assert [device.processors for device in seen] == [132, 132, 114]
    assert all(device.arch == 90 and device.engine for device in seen) and len(seen) == len(GPUS[90])


def test_an_empty_layer_needs_no_kernel(capsys):
    assert status_of("--arch", 90, "--layers", "mb0ic4iw9oc4kw3", "--function", "conv") == 0
    assert capsys.readouterr().out.startswith("compiled 0 of 0 kernels")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--arch", "91", "--layers", LAYER), "argument --arch: must be one of 75, 80, 86, 89, 90, 100, 120, not '91'"),
        (("--layers", LAYER), "--arch"),
        (("--arch", "90"), "--layers"),
        (("--arch", "90", "--layers", "ic4"), "argument --layers: mb must be given, in 'ic4'"),
        (("--arch", "90", "--layers", "@none"), "argument --layers: 'none' cannot be read: No such file or directory"),
        (("--arch", "90", "--layers", LAYER, "--data-format", "OIX"), "argument --layers: data_format must be one of"),
        (("--arch", "90", "--layers", LAYER, "--dtype", "int8"), "--dtype"),
    ],
)
def test_bad_arguments(arguments, said, capsys):
    assert_refused(capsys, said, *arguments)
    assert fake_cupy.compiled == []


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cubins.VARIABLE, str(tmp_path / "file" / "folder"))
    assert_refused(capsys, "folder cannot be written: Not a directory; set CONV", "--arch", 90, "--layers", LAYER)


def test_a_compiler_that_refuses(cupy, monkeypatch, capsys):
    def refuse(program, options):
        raise fake_cupy.NVRTCError("NVRTC_ERROR_INVALID_OPTION (5)")

    monkeypatch.setattr(cupy.cuda.nvrtc, "compileProgram", refuse)
    assert_refused(capsys, "NVRTC_ERROR_INVALID_OPTION (5): the log of", "--arch", 90, "--layers", LAYER)


def test_no_compiler(monkeypatch, capsys):
    def missing():
        raise ImportError("CuPy must find NVRTC")

    monkeypatch.setattr(compiler, "version", missing)
    assert_refused(capsys, "CuPy must find NVRTC", "--arch", 90, "--layers", LAYER)


def test_an_interrupted_command(cupy, monkeypatch, capsys):
    def interrupt(program, options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cupy.cuda.nvrtc, "compileProgram", interrupt)
    assert status_of("--arch", 90, "--layers", LAYER) == 130
    assert capsys.readouterr().err == ""
