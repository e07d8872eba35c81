"""enable(), disable() and enabled(): what is in PyTorch's dispatcher when, and what is left behind."""

import gc
import logging
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import convgrad_cy.torch as override  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def disabled():
    override.disable()
    yield
    override.disable()


def is_ours():
    """Whether a convolution is computed by us, seen from what is counted."""
    before = override.status().computed["_convolution"]
    torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    return override.status().computed["_convolution"] > before


def test_enable_and_disable():
    assert not override.is_enabled() and not is_ours()
    for _ in range(2):
        override.enable()
        assert override.is_enabled() and override.status().enabled and is_ours()
    for _ in range(2):
        override.disable()
        assert not override.is_enabled() and not is_ours()


def test_blocks_nest():
    with override.enabled():
        with override.enabled():
            assert is_ours()
        assert is_ours()
    assert not is_ours()
    override.enable()
    with override.enabled():
        pass
    assert is_ours()


def test_an_error_leaves_a_block():
    with pytest.raises(ZeroDivisionError), override.enabled():
        raise ZeroDivisionError
    assert not is_ours()


def test_disable_in_a_block():
    with override.enabled(), override.enabled():
        override.disable()
        assert not is_ours()
    assert not is_ours()


def test_blocks_of_two_threads():
    """The one that is left last switches back."""
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with override.enabled():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    with override.enabled():
        thread.start()
        assert entered.wait(60)
    assert is_ours()
    leave.set()
    thread.join()
    assert not is_ours()


#: PyTorch's own kernel, taken while nobody is above it.
OWN = torch.library.get_kernel("aten::_convolution", "CPU")


class Other:
    """Another package that has a kernel of its own at the same place: twice the result, and it counts."""

    def __init__(self):
        self.calls = 0
        self.keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        self.library = torch.library.Library("aten", "IMPL")
        self.library.impl("_convolution", self, "CPU", **override.switch._OVERRIDING)

    def __call__(self, *call):
        self.calls += 1
        return 2 * OWN.call_boxed(self.keys, *call)


@pytest.mark.filterwarnings("ignore:.*[Oo]verrid.*")
def test_another_override_before_ours():
    other = Other()
    try:
        with override.enabled():
            assert is_ours() and other.calls == 0
            torch.conv1d(torch.ones(0, 1, 4), torch.ones(1, 1, 2))
            assert other.calls == 1  # what is not ours goes to it
        calls = other.calls
        assert not is_ours()
        assert other.calls == calls + 1
    finally:
        other.library._destroy()


@pytest.mark.filterwarnings("ignore:.*[Oo]verrid.*")
def test_another_override_after_ours():
    override.enable()
    other = Other()
    try:
        assert not is_ours() or other.calls == 1
        override.disable()
        calls = other.calls
        assert torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2)).tolist() == [[[4, 4, 4]]]
        assert other.calls == calls + 1
    finally:
        other.library._destroy()


def memory():
    """Of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def growth(pair):
    """Objects and bytes that 10,000 calls leave behind, once 1,000 have filled what fills up."""
    for _ in range(1_000):
        pair()
    gc.collect()
    objects, size = len(gc.get_objects()), memory()
    for _ in range(10_000):
        pair()
    gc.collect()
    return len(gc.get_objects()) - objects, memory() - size


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say how large a process is")
def test_nothing_grows():
    """An object for each pair would be 10,000. PyTorch's own registration leaves some 200 bytes, and no object."""
    x, w = torch.randn(2, 4, 9, 9), torch.randn(4, 4, 3, 3)
    before = torch.conv2d(x, w)

    def ours():
        override.enable()
        override.disable()

    def bare():
        library = torch.library.Library("aten", "IMPL")
        for operator in ("_convolution", "convolution_backward"):
            torch.library.get_kernel(f"aten::{operator}", "CPU")
            library.impl(operator, print, "CPU", **override.switch._OVERRIDING)
        library._destroy()

    objects, size = growth(ours)
    _, least = growth(bare)
    assert objects < 1_000
    assert size <= 1.5 * least + 10_000 * 64
    assert torch.equal(torch.conv2d(x, w), before)


def test_what_is_passed_on_is_logged(caplog):
    with caplog.at_level(logging.DEBUG, "convgrad_cy.torch"), override.enabled():
        torch.conv1d(torch.ones(0, 1, 4), torch.ones(1, 1, 2))
    assert "aten::_convolution went to PyTorch: a tensor without elements" in caplog.text
    assert override.status().passed_on["_convolution", "a tensor without elements"] > 0


@pytest.mark.parametrize(
    "source, said", [("__version__ = '2.8.1+cpu'", "not 2.8.1"), ("raise ImportError('broken')", "pip install torch")]
)
def test_no_pytorch_or_an_old_one(tmp_path, source, said):
    (tmp_path / "torch.py").write_text(source)
    root = str(Path(override.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])}
    command = [sys.executable, "-c", "import convgrad_cy.torch"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 1
    assert "ImportError: convgrad_cy.torch needs PyTorch 2.9 or newer" in done.stderr
    assert said in done.stderr
