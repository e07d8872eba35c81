"""Both operators on random calls: values, shapes, types and strides. None of the calls is left to PyTorch.

CONVGRAD_CY_TORCH_CALLS is the number of calls (400). CONVGRAD_CY_SEED is the seed of the first one (1). Every failure
names its seed.
"""

import os

import numpy as np
import pytest
import reference

torch = pytest.importorskip("torch", minversion="2.9")

from aten_calls import DTYPES, RESULTS, draw  # noqa: E402
from bounds import are_few, contract, direct, excess  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402

pytestmark = pytest.mark.torch

CALLS = int(os.environ.get("CONVGRAD_CY_TORCH_CALLS", "400"))
SEED = int(os.environ.get("CONVGRAD_CY_SEED") or 1)
CHUNK = 50


def numbers_wrong(call, results):
    """The excess of each result that is further from the exact one than allowed."""
    operands = {"y": (call.x, call.w), "dx": (call.dy, call.w), "dw": (call.x, call.dy)}
    for name, result, of_it in zip(RESULTS, results, call.exact(), strict=True):
        if result is not None:
            if name == "db":  # PyTorch's own sum
                allowed = direct(call.x.dtype, *of_it)
            else:
                few = are_few(result, *operands[name])
                allowed = contract(call.x.dtype, *of_it, call.bias if name == "y" else None, few)
            if times := excess(result, of_it[0], allowed):
                yield f"{name} is {times} times as far off as allowed"


def places_wrong(call, results):
    """The differences of each result from PyTorch's meta kernels, on which the compiler relies."""
    for name, result, fake in zip(RESULTS, results, call.fakes(), strict=True):
        if (result is None) != (fake is None):
            yield f"{name} is {type(result)}, not {type(fake)}"
        elif result is not None:
            for what in ("shape", "stride", "dtype", "storage_offset", "requires_grad"):
                ours, theirs = (getattr(tensor, what) for tensor in (result, fake))
                ours, theirs = (ours(), theirs()) if callable(ours) else (ours, theirs)
                if ours != theirs:
                    yield f"{name} has the {what} {ours}, not {theirs}"


@pytest.mark.parametrize("first", range(0, CALLS, CHUNK))
def test_random_calls(first):
    compared, wrong = 0, []
    for seed in range(SEED + first, SEED + min(first + CHUNK, CALLS)):
        call = draw(seed)
        if call is None:
            continue
        compared += 1
        before = override.status()
        with override.enabled():
            results = call.forward(), *call.backward()
        after = override.status()
        messages = [*places_wrong(call, results), *numbers_wrong(call, results)]
        if after.passed_on != before.passed_on:
            messages.append(f"passed on: {set(after.passed_on.items()) - set(before.passed_on.items())}")
        elif after.computed != {name: count + ("CUDA" not in name) for name, count in before.computed.items()}:
            messages.append("not counted")
        wrong += [f"CONVGRAD_CY_TORCH_CALLS=1 CONVGRAD_CY_SEED={seed}: {message}" for message in messages]
    assert wrong == []
    assert compared or CALLS < CHUNK


def test_calls_are_of_all_kinds():
    """Random calls must have each type with each rank, transposed or not, with and without a bias."""
    calls = [call for call in map(draw, range(1000)) if call is not None]
    kinds = {(call.x.dtype, call.x.dim(), call.geometry[3], call.bias is None) for call in calls}
    assert len(kinds) == len(DTYPES) * 3 * 2 * 2
    assert len({tuple(call.mask) for call in calls}) == 8
    for tensors in zip(*(call[:3] for call in calls), strict=True):
        assert sum(not tensor.is_contiguous() for tensor in tensors) > 200
        assert sum(0 in tensor.stride() for tensor in tensors) > 50
    assert sum(call.x.is_contiguous(memory_format=torch.channels_last) for call in calls if call.x.dim() == 4) > 50
    assert sum(len(values) == 1 < call.x.dim() - 2 for call in calls for values in call.geometry[:3]) > 100


def by_definition(call):
    """y without the bias, dx and dw, by the loops of tests/reference.py."""
    stride, padding, dilation, transposed, _, groups = call.geometry
    rank = call.x.dim() - 2
    lists = [tuple(values) * (rank // len(values)) for values in (stride, dilation, padding)]
    keywords = dict(zip(("stride", "dilation", "pad_begin"), lists, strict=True), groups=groups)
    dy, x, w = (np.ascontiguousarray(tensor.double()) for tensor in call[:3])
    if transposed:
        y = reference.dgrad(x, w, dy.shape, **keywords)
        return y, reference.fprop(dy, w, x.shape, **keywords), reference.wgrad(dy, x, w.shape, **keywords)
    y = reference.fprop(x, w, dy.shape, **keywords)
    return y, reference.dgrad(dy, w, x.shape, **keywords), reference.wgrad(x, dy, w.shape, **keywords)


def test_yardstick():
    """The exact results, the yardstick of all, must equal the definition."""
    for call in filter(None, map(draw, range(25))):
        call = call._replace(bias=None, mask=[True, True, False])
        for expected, of_it in zip(by_definition(call), call.exact()[:3], strict=True):
            assert not excess(torch.from_numpy(expected), of_it[0], direct(torch.float64, *of_it))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_wrong_number_is_seen(dtype):
    """An error of a sixteenth of the greatest element must be seen, NaN, too, and other strides."""
    kinds = ((call, call.x.dtype, call.x.dim(), all(call.mask)) for call in filter(None, map(draw, range(1000))))
    call = next(call for call, *kind in kinds if kind == [dtype, 4, True])
    with override.enabled():
        results = [call.forward(), *call.backward()]
    assert not [*numbers_wrong(call, results)] and not [*places_wrong(call, results)]
    for index, result in enumerate(results):
        for change in (float(result.abs().max()) / 16, torch.nan):
            wrong = [one.clone() for one in results]
            wrong[index][(0,) * result.dim()] += change
            assert len([*numbers_wrong(call, wrong)]) == 1
        wrong[index] = result.new_zeros((*result.shape, 2))[..., 0]
        assert [*places_wrong(call, wrong)]
