"""Machines that lack a part: a message names it, and the CPU path does not notice.

Each case is a process of its own. If the real CuPy is needed and not installed, the test says so.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from convgrad_cy.cli import info

ON_THE_CPU = """
import numpy as np
import convgrad_cy as cg
y = cg.conv(np.ones((1, 2, 5), np.float32), np.ones((3, 2, 2), np.float32))
assert (y == 4).all() and y.shape == (1, 3, 4)
"""
#: An array on a GPU of a library that is not CuPy.
ELSEWHERE = """
class Tensor:
    __module__ = "torch"
    def __dlpack_device__(self):
        return 2, 0
"""


def run(code, *path, **environment):
    """The output of a new process, with folders before its path."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(info.__file__))))
    path = os.pathsep.join([*map(str, path), here, os.environ.get("PYTHONPATH", "")])
    environment = os.environ | environment | {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(call):
    """Code that prints the type and the message of a call's exception."""
    return f"try:\n    {call}\nexcept Exception as error:\n    print(type(error).__name__ + ': ' + str(error))"


@pytest.fixture
def no_cupy(tmp_path):
    """A folder that hides CuPy, as if it were not installed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'cupy':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: None if name == 'cupy' else find(name, package)\n"
    )
    return tmp_path


def fake(folder, code):
    """A package called cupy with this code."""
    (folder / "cupy.py").write_text(code)
    return folder


def test_importing_the_package_imports_no_cupy(tmp_path):
    fake(tmp_path, "raise SystemError('imported')")
    code = f"{ON_THE_CPU}\nimport sys, convgrad_cy.gpu\nprint(sorted(n for n in sys.modules if n.startswith('cup')))"
    assert run(code, tmp_path) == "[]\n"


def test_without_cupy(no_cupy):
    code = f"{ON_THE_CPU}{ELSEWHERE}\n{refusal('cg.conv(Tensor(), Tensor())')}"
    assert run(code, no_cupy) == (
        "ImportError: x is on a GPU, a torch.Tensor, which takes CuPy: pip install 'cupy-cuda13x[ctk]'\n"
    )
    assert dict(rows(no_cupy))["GPU"] == "none: CuPy is not installed"


def rows(*path):
    """The report of ``python -m convgrad_cy info``."""
    return eval(run("from convgrad_cy.cli import info; print(info.lines())", *path))


def test_an_array_of_another_library_with_cupy(tmp_path):
    """The message must not need an import of CuPy."""
    fake(tmp_path, "raise SystemError('imported')")
    code = f"{ON_THE_CPU}{ELSEWHERE}\n{refusal('cg.conv(Tensor(), Tensor())')}"
    assert run(code, tmp_path) == (
        "TypeError: x must be a cupy.ndarray, not a torch.Tensor: cupy.from_dlpack makes it one\n"
    )


def test_a_cupy_that_cannot_be_imported(tmp_path):
    fake(tmp_path, "raise ImportError('libcuda.so.1: cannot open\\nshared object file')")
    run(f"{ON_THE_CPU}\ntry:\n    import cupy\nexcept ImportError:\n    pass\n{ON_THE_CPU}", tmp_path)
    assert dict(rows(tmp_path))["GPU"] == ("none: CuPy is installed, but libcuda.so.1: cannot open shared object file")


#: CuPy as the package sees it on a machine where NVRTC is missing or refuses a text.
HALF = """
import contextlib
class ndarray:
    strides, ndim, size, itemsize = (8, 8, 4), 3, 2, 4
    class data:
        ptr, device_id = 4096, 0
    def __init__(self, shape=(1, 1, 2)):
        import numpy
        self.shape, self.dtype = shape, numpy.dtype("f4")
def empty(shape, dtype):
    return ndarray(shape)
class cuda:
    class Device(contextlib.nullcontext):
        compute_capability = "90"
        attributes = {"MultiProcessorCount": 132, "MaxSharedMemoryPerBlockOptin": 232448}
    class device:
        get_device_id = staticmethod(lambda: 0)
    class runtime:
        is_hip = False
    class nvrtc:
        NVRTCError = type("NVRTCError", (RuntimeError,), {})
        createProgram = destroyProgram = getProgramLog = staticmethod(lambda *_: "gather.cu(3): error")
        @staticmethod
        def getVersion():
            VERSION
        @classmethod
        def compileProgram(cls, *_):
            raise cls.NVRTCError("NVRTC_ERROR_COMPILATION (6)")
"""


def test_a_cupy_without_nvrtc(tmp_path):
    fake(tmp_path, HALF.replace("VERSION", "raise RuntimeError('no libnvrtc.so.13')"))
    code = f"{ON_THE_CPU}\nimport cupy\nx = cupy.ndarray()\n{refusal('cg.conv(x, x)')}{ON_THE_CPU}"
    assert run(code, tmp_path) == (
        "ImportError: CuPy must find NVRTC, CUDA's compiler at run time: pip install 'cupy-cuda13x[ctk]' "
        "(CuPy says: no libnvrtc.so.13)\n"
    )


def test_an_error_of_the_compiler_is_not_hidden(tmp_path):
    fake(tmp_path, HALF.replace("VERSION", "return 13, 0"))
    code = f"{ON_THE_CPU}\nimport cupy\nx = cupy.ndarray()\n{refusal('cg.conv(x, x)')}"
    said = run(code, tmp_path, CONVGRAD_CY_CACHE_DIR=str(tmp_path))
    assert said == "CompileError: NVRTC_ERROR_COMPILATION (6): gather.cu(3): error\n"


needs_cupy = pytest.mark.skipif(find_spec("cupy") is None, reason="CuPy is not installed")


def has_driver():
    import cupy

    return cupy.is_available()


@needs_cupy
def test_the_real_cupy_without_a_driver():
    if has_driver():
        pytest.skip("this machine has a GPU")
    run(f"import cupy\n{ON_THE_CPU}")
    assert "cudaErrorInsufficientDriver" in dict(rows())["GPU"] or "no CUDA" in dict(rows())["GPU"]


@needs_cupy
def test_numpy_arrays_do_not_wake_the_real_cupy():
    code = f"{ON_THE_CPU}\nimport sys\nprint('cupy' in sys.modules)"
    assert run(code) == "False\n"


@needs_cupy
def test_the_real_array_is_seen_without_its_memory():
    """Validation must use addresses only, so it works on memory that does not exist."""
    code = """
import cupy, numpy as np
import convgrad_cy as cg
from convgrad_cy.arrays import CUPY, library_of, is_addressable
memory = cupy.cuda.UnownedMemory(1 << 40, 1 << 20, None, 0)
def array(offset, shape, dtype="f4", strides=None):
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, offset), strides)
x, w = array(0, (1, 2, 5)), array(4096, (3, 2, 2))
assert library_of("x", x) is CUPY
flipped = CUPY.seen(x[:, :, ::-1])
assert flipped.strides == (40, 20, -4) and flipped.__array_interface__["data"][0] == (1 << 40) + 16
assert not is_addressable(CUPY.seen(array(2, (1, 2, 5))))
assert CUPY.seen(array(0, (0, 2))).shape == (0, 2)
for out, message in (
    (array(36, (1, 3, 4)), "out must not overlap x in memory"),
    (array(8192, (1, 3, 4), strides=(0, 0, 4)), "out must not overlap itself, but has strides (0, 0, 4)"),
    (array(8194, (1, 3, 4)), "out must be aligned to its itemsize 4, not have the strides (48, 16, 4)"),
    (array(8192, (1, 3, 4), "f8"), "out must have the dtype of x, float32, not float64"),
    (np.empty((1, 3, 4), "f4"), "out must be a cupy.ndarray like x, not a numpy.ndarray"),
):
    try:
        cg.conv(x, w, out=out)
        raise AssertionError(message)
    except (TypeError, ValueError) as error:
        assert str(error) == message, error
try:
    cg.conv(x, np.empty((3, 2, 2), "f4"))
    raise AssertionError
except TypeError as error:
    assert str(error) == "w must be a cupy.ndarray like x, not a numpy.ndarray"
"""
    run(code)
