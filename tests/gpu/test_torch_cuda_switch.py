"""The argument ``cuda`` of ``enable()`` and ``enabled()``: its values, its errors, and the kernels before and after."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from cuda_calls import BACKWARD, FORWARD, call, exact, imagined, since  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy._aten import Untraced  # noqa: E402
from convgrad_cy.torch import cuda, kernels, kinds  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.simulator]


@pytest.fixture(autouse=True)
def pytorch(monkeypatch):
    with imagined(monkeypatch) as made:
        yield made


def test_pytorchs_own_kernels(monkeypatch):
    """The kernels that were there before must compute calls that are passed on, and all calls after disable()."""
    there = call().on()
    expected = exact(call())
    for operator, kernel in cuda.KERNELS.items():
        monkeypatch.setattr(kernel, "previous", kernels.previous(operator, "IPU"))
    for enabled in (True, False):
        override.enable(cuda=True) if enabled else override.disable()
        before = override.status()
        y, gradients = there.forward(), there.backward()
        for result, value in zip((y, *gradients), expected, strict=True):
            assert value is None or torch.equal(result.host.double(), value)
        assert since(before)[0] == {FORWARD: 0, BACKWARD: 0}
        assert len(since(before)[1]) == (2 if enabled else 0)


def owner(there):
    """Whether a call is ours now: "all", True (a kind alone), or False."""
    before = override.status()
    there.forward()
    there.backward()
    computed, reasons = since(before)
    assert sum(computed.values()) + len(reasons) in (0, 2)
    return {0: False, 1: True, 2: "all"}[sum(computed.values())]


@pytest.fixture
def there(monkeypatch):
    """A small call, whose gradients are of a kind."""
    monkeypatch.setattr(kinds, "KINDS", [kind._replace(channels=1, elements=1) for kind in kinds.KINDS])
    return call(groups=8, dtype=torch.bfloat16).on()


def test_enable_and_disable(there):
    assert owner(there) is False
    for cuda_value in (True, "all", False, "all", True, True):
        assert override.enable(cuda=cuda_value) is None
        assert owner(there) == cuda_value and override.is_enabled()
    override.disable()
    assert owner(there) is False


def test_blocks(there):
    """The last request that names ``cuda`` must count. A request without it must change nothing."""
    with override.enabled(cuda=True):
        assert owner(there) is True
        with override.enabled():
            assert owner(there) is True
            with override.enabled(cuda="all"), override.enabled("direct"):
                assert owner(there) == "all"
            assert owner(there) is True
        override.enable()
        assert owner(there) is True
    assert owner(there) is False and override.is_enabled()


def test_the_cpu_is_not_affected(there):
    """enable(cuda=True) must compute CPU tensors as enable() does, and a bare enable() no GPU tensors."""
    host = call()
    for cuda_value in (False, True):
        override.enable(cuda=cuda_value)
        before = override.status().computed["_convolution"]
        assert torch.equal(host.forward().double(), exact(host)[0])
        assert override.status().computed["_convolution"] == before + 2  # one is in exact()


def test_registration(monkeypatch):
    """Both operators must be registered at CUDA, as functions that PyTorch's compiler does not trace."""
    registered = []

    class Library:
        def impl(self, operator, function, key, **_):
            registered.append((operator, key, type(function)))

    monkeypatch.setattr(override.switch, "_library", Library())
    monkeypatch.setattr(override.switch, "_cuda", None)
    override.enable(cuda=True)
    assert registered == [("_convolution", "CUDA", Untraced), ("convolution_backward", "CUDA", Untraced)]


def test_kernels_are_registered_once(monkeypatch):
    """Kernels must stay registered, because another registration is unsafe while other threads compute."""
    monkeypatch.setattr(torch.library.Library, "impl", None)
    for cuda_value in (True, False, "all"):
        override.enable(cuda=cuda_value)
        override.disable()


@pytest.mark.parametrize("value", ("none", "All", 1, 0, None, ("all",)), ids=repr)
@pytest.mark.parametrize("switch", (override.enable, override.enabled))
def test_a_wrong_value(switch, value):
    with pytest.raises(ValueError) as caught:
        switch(cuda=value).__enter__()
    assert str(caught.value) == f"cuda must be False, True or 'all', not {value!r}"
    assert not override.is_enabled()


def test_no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError) as caught:
        override.enable(cuda=True)
    assert str(caught.value).startswith("cuda=True needs CuPy: pip install 'cupy-cuda13x[ctk]'")
    assert not override.is_enabled()
    override.enable()
    assert override.is_enabled()


@pytest.mark.parametrize("package", ("PyTorch", "CuPy"))
def test_rocm(monkeypatch, package):
    if package == "PyTorch":
        monkeypatch.setattr(torch.version, "hip", "6.4")
    else:
        monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "is_hip", True)
    with pytest.raises(ValueError) as caught:
        override.enable(cuda="all")
    assert str(caught.value) == f"cuda must be False with this {package}, which is for ROCm, not 'all'"
    assert not override.is_enabled()


ALONE = """
import sys
sys.modules["cupy"] = None
import torch
import convgrad_cy.torch as override
before = str(torch.library.get_kernel("aten::_convolution", "CUDA"))
override.enable()
torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
assert override.status().computed == {"_convolution": 1, "convolution_backward": 0}, override.status()
assert str(torch.library.get_kernel("aten::_convolution", "CUDA")) == before
assert "convgrad_cy.torch.cuda" not in sys.modules
"""


def test_the_default_is_the_cpu_alone():
    """A bare enable() must import nothing for GPUs and register nothing at CUDA."""
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=120)
