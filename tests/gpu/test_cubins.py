"""The folder of compiled kernels: its keys, damaged files, several processes, and a folder that cannot be written."""

import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from threading import Barrier, Thread

import fake_cupy
import nvrtc
import pytest

from convgrad_cy.gpu import compiler, cubins

OPTIONS = compiler.options_of(90, ())
TEXT = "extern __global__ void kernel() {}"


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    fake_cupy.install(monkeypatch)
    return sys.modules["cupy"]


@pytest.fixture
def unwritable(tmp_path, monkeypatch):
    """A folder that nobody can make, not even root: a file is in its path."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cubins.VARIABLE, str(tmp_path / "file" / "folder"))


def test_a_kernel_is_compiled_once():
    path = cubins.path_of(TEXT, OPTIONS)
    assert path.parent == cubins.folder() and path.read_text() == TEXT
    assert cubins.path_of(TEXT, OPTIONS) == path
    assert fake_cupy.compiled == [TEXT]


@pytest.mark.parametrize(
    "changed",
    [
        (TEXT + " ", OPTIONS, (13, 0)),
        (TEXT, compiler.options_of(80, ()), (13, 0)),
        (TEXT, compiler.options_of(90, (("WARPGROUPS", "2"),)), (13, 0)),
        (TEXT, (*OPTIONS, "-lineinfo"), (13, 0)),
        (TEXT, OPTIONS, (13, 1)),
        (TEXT, OPTIONS, (12, 0)),
    ],
)
def test_everything_that_a_cubin_depends_on_is_in_its_key(changed, cupy, monkeypatch):
    cubins.path_of(TEXT, OPTIONS)
    text, options, version = changed
    monkeypatch.setattr(cupy.cuda.nvrtc, "getVersion", lambda: version)
    assert cubins.found(text, options) is None
    cubins.path_of(text, options)
    assert len(fake_cupy.compiled) == 2 and len(list(cubins.folder().iterdir())) == 2


def test_a_new_cupy_finds_the_kernels(cupy):
    path = cubins.path_of(TEXT, OPTIONS)
    cupy.__version__ = "99"
    assert cubins.path_of(TEXT, OPTIONS) == path and len(fake_cupy.compiled) == 1


@pytest.mark.parametrize("damaged", (b"", TEXT.encode()[:-1], TEXT.encode() + b" ", b"x" * len(TEXT)))
def test_a_damaged_file_is_made_anew(damaged):
    path = cubins.path_of(TEXT, OPTIONS)
    path.write_bytes(damaged)
    assert cubins.found(TEXT, OPTIONS) is None
    assert cubins.path_of(TEXT, OPTIONS).read_text() == TEXT
    assert len(fake_cupy.compiled) == 2 and cubins.found(TEXT, OPTIONS) == path


SEVERAL = """
import sys
from convgrad_cy.gpu import compiler, cubins

compiler.version = lambda: (13, 0)
compiler.compiled = lambda text, options: text.encode() * 20000
for i in range(40):
    text = f"kernel {i}"
    path = cubins.path_of(text, ("-arch=sm_90",))
    assert path.read_bytes() == text.encode() * 20000
"""


def test_several_processes_write_the_same_kernels(tmp_path):
    """No process may see a part of a file, and nothing unfinished may stay."""
    root = Path(cubins.__file__).parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {cubins.VARIABLE: str(tmp_path / "cubins"), "PYTHONPATH": paths}
    processes = [subprocess.Popen([sys.executable, "-W", "error", "-c", SEVERAL], env=environment) for _ in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    names = [path.name for path in (tmp_path / "cubins").iterdir()]
    assert len(names) == 40 and all(name.endswith(".cubin") for name in names)


def test_a_folder_that_cannot_be_written(unwritable):
    """Kernels must be kept for this process. One warning must name the folder and the reason."""
    with pytest.warns(RuntimeWarning, match=r"kept for this process only.*file.folder.*CONVGRAD_CY_CACHE_DIR") as told:
        path = cubins.path_of(TEXT, OPTIONS)
        other = cubins.path_of("other", OPTIONS)
    assert len(told) == 1
    assert path.read_text() == TEXT and other.parent == path.parent != cubins.folder()
    assert cubins.path_of(TEXT, OPTIONS) == path and fake_cupy.compiled == [TEXT, "other"]


def test_threads_warn_once(unwritable):
    together = Barrier(4, timeout=30)

    def compile(i):
        together.wait()
        cubins.path_of(f"kernel {i}", OPTIONS)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        threads = [Thread(target=compile, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(told) == 1 and len(list(cubins._own.path.iterdir())) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_only_the_process_itself_removes_its_folder(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    cubins._remove(folder, os.getppid())
    assert folder.exists()
    cubins._remove(folder, os.getpid())
    assert not folder.exists()


def test_a_kernel_from_a_folder_that_is_only_read(monkeypatch):
    """Kernels that were compiled ahead must be used although nothing can be written."""
    path = cubins.path_of(TEXT, OPTIONS)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cubins.atomic_file, "replaced", refuse)
    assert cubins.path_of(TEXT, OPTIONS) == path


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({cubins.VARIABLE: "/a/b"}, "/a/b"),
        ({cubins.VARIABLE: "", "XDG_CACHE_HOME": "/a/c"}, "/a/c/convgrad_cy"),
        ({cubins.VARIABLE: "", "XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/convgrad_cy"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has other variables")
def test_the_folder(variables, expected, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cubins.folder() == Path(expected)


@pytest.mark.skipif(find_spec("cupy") is None or nvrtc.why_missing() is not None, reason="CuPy or NVRTC is missing")
def test_the_real_compiler(monkeypatch):
    """A cubin must be an ELF file. It must not need a GPU. An error must have the compiler's log."""
    monkeypatch.delitem(sys.modules, "cupy")
    code = 'extern "C" __global__ void kernel(float *to) { to[threadIdx.x] = 1; }'
    for arch, macros in ((75, ()), (90, ()), (90, (("WARPGROUPS", "2"),))):
        assert compiler.compiled(code, compiler.options_of(arch, macros)).startswith(b"\x7fELF")
    with pytest.raises(compiler.CompileError, match=r"(?s)convgrad_cy\.cu.*expected"):
        compiler.compiled(code.replace("{", ""), OPTIONS)
    with pytest.raises(compiler.CompileError, match="arch"):
        compiler.compiled(code, compiler.options_of(990, ()))
