"""PyTorch's operators in our kernels, on random calls: values, shapes, types and strides.

CONVGRAD_CY_TORCH_CALLS is the number of calls (400), CONVGRAD_CY_SEED the seed of the first (named in every failure).
"""

import os
from random import SystemRandom

import pytest

torch = pytest.importorskip("torch")

from torch_calls import draw  # noqa: E402

import convgrad_cy as cg  # noqa: E402
import convgrad_cy.torch as override  # noqa: E402

pytestmark = pytest.mark.torch

CALLS = int(os.environ.get("CONVGRAD_CY_TORCH_CALLS", "400"))
SEED = int(os.environ.get("CONVGRAD_CY_SEED") or SystemRandom().randrange(10**9))
CHUNK = 50

#: Half a unit in the last place, relative to a number.
ROUNDING = {torch.float16: 2**-11, torch.bfloat16: 2**-8, torch.float32: 2**-24, torch.float64: 2**-53}


#: More terms than any sum here has: 3 * 12**3 positions, or 4**3 taps of 48 channels, and a bias.
MOST_TERMS = 6000


def bound(dtype, exact, magnitudes, has_bias):
    """How far each element may be off: the contract of docs/pytorch.md.

    float64: (K + 1) eps S, of K terms whose magnitudes have the sum S. Others: half a unit in the last place, and 2e-5
    of the greatest result. A bias is added to the rounded sum, so that this, too, is off by half a unit.
    """
    eps, greatest = ROUNDING[dtype], exact.abs().max()
    if dtype is torch.float64:
        return MOST_TERMS * eps * magnitudes
    # A result that was rounded is off by eps of itself, so of at most (1 + 2e-5) times the exact one.
    sums = magnitudes.max() if has_bias else 0
    return (1 + 1e-4) * eps * (exact.abs() + sums) + 2e-5 * greatest


@pytest.mark.parametrize("first", range(0, CALLS, CHUNK))
def test_random_calls(first):
    compared = 0
    for seed in range(SEED + first, SEED + min(first + CHUNK, CALLS)):
        call = draw(seed)
        if call is None:
            continue
        where = f"CONVGRAD_CY_TORCH_CALLS=1 CONVGRAD_CY_SEED={seed}"
        expected, magnitudes, faked = call.exact(), call.mapped(torch.abs).exact(), call.faked()
        before = override.status().computed
        with override.enabled():
            results = call.results()
        assert override.status().computed == {name: count + 1 for name, count in before.items()}, where
        rows = zip(("y", "dx", "dw", "db"), results, expected, magnitudes, faked, strict=True)
        for name, result, exact, magnitude, fake in rows:
            assert (result is None) == (fake is None), (where, name)
            if result is not None:
                assert (result.shape, result.dtype) == (fake.shape, call.x.dtype), (where, name)
                assert result.stride() == fake.stride(), (where, name)
                has_bias = call.bias is not None and name == "y"
                off = (result.double() - exact).abs() - bound(call.x.dtype, exact, magnitude, has_bias)
                assert (off <= 0).all(), (where, name, float(off.max()))
        compared += 1
    assert compared > 0 or CALLS < CHUNK


def test_bits_do_not_depend_on_the_threads():
    threads = torch.get_num_threads()
    x, w = torch.randn(4, 32, 28, 28), torch.randn(32, 32, 3, 3)
    results = []
    try:
        with override.enabled():
            for count in (1, 2, 3):
                torch.set_num_threads(count)
                assert override.status().threads == count
                results.append(torch.conv2d(x, w))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(result, results[0]) for result in results)
    assert torch.equal(results[0], torch.from_numpy(cg.conv(x.numpy(), w.numpy())))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "shape, kernel, stride", [((2, 3, 32, 32), 4, 4), ((2, 8, 16, 16), 4, 2), ((1, 4, 8, 8, 8), 2, 2)]
)
def test_layers_whose_arrays_are_put_into_another_order(dtype, shape, kernel, stride):
    """Kernels as large as their stride, and strided ones: their work takes arrays, not addresses."""
    convolve = {4: torch.conv2d, 5: torch.conv3d}[len(shape)]
    x = torch.randn(shape).to(dtype).requires_grad_()
    w = torch.randn(16, shape[1], *[kernel] * (len(shape) - 2)).to(dtype).requires_grad_()
    with override.enabled():
        y = convolve(x, w, stride=stride)
        dy = torch.randn(y.shape).to(dtype)
        ours = y.detach(), *torch.autograd.grad(y, (x, w), dy)
    x, w = (tensor.detach().double().requires_grad_() for tensor in (x, w))
    y = convolve(x, w, stride=stride)
    for result, exact in zip(ours, (y.detach(), *torch.autograd.grad(y, (x, w), dy.double())), strict=True):
        assert ((result.double() - exact).abs() <= bound(dtype, exact, None, False)).all()
