"""Arrays copied to another order of axes: any axes and elements, and neighbours that Winograd's walks skip."""

from itertools import permutations

import numpy as np
import pytest
from layouts import INPUTS, OUTPUTS
from operations import OPERATIONS, bits, real_tensors
from problems import PROBLEMS, parse

from convgrad_cy import _repeat
from convgrad_cy.cpu.plan.operand import Operand
from convgrad_cy.cpu.plan.pipeline import Sequence
from convgrad_cy.cpu.rewrites import copies

#: The tensors whose neighbours are taken apart, in all three kernels. fprop adds the sums of the walks and reads the
#: filter for all walks at once, so it leaves the filter, unless each task of many walks reads it for itself.
SKIPPING = {
    parse('mb3ic20iw300oc33kw7dw2pw9n"dilation"'): "xwy",
    parse('mb2g2ic40ih21iw23oc36kh3dh1dw1ph2n"dilated_groups"'): "xy",
    parse('mb2ic24ih20iw70oc40kh4sh2ph1n"stride"'): "xw",
    parse('mb1ic300iw64oc260kw16sw8pw4n"stride_filters_inside_tasks"'): "xw",
    parse('mb2ic9ih12iw70oc17kh3dh1dw0ph2n"dilated_rows"'): "",
    PROBLEMS["2d_same"]: "",
}
problems = pytest.mark.parametrize("problem, skipped", SKIPPING.items(), ids=str)
kernels = pytest.mark.parametrize("name", ("conv", "conv_backward_data", "conv_backward_filter"))


@pytest.fixture
def counted(monkeypatch):
    """Count the arrays that are copied to another order and back."""
    seen, run = [], Sequence.run

    def counting(self, *arrays):
        seen.append(sum(isinstance(step, copies.Copying) for step, *_ in self.steps))
        run(self, *arrays)

    monkeypatch.setattr(Sequence, "run", counting)
    return seen


def copy(array, target, threads):
    step = copies.Copy(Operand(0, 0, array), Operand(1, 0, target), threads)
    step.ready({}).run_on((_repeat.address_of(array), _repeat.address_of(target)))


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("dtype", (np.uint16, np.float32, np.int64))
@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_copy(order, dtype, threads):
    """A copy must be exact, with sizes that no vector divides and more rows than a task has, and stay in its target."""
    array = np.random.default_rng(0).integers(1, 2**15, (3, 5, 37, 43)).astype(dtype)
    memory = np.zeros([n + 2 for n in array.transpose(order).shape], dtype)
    target = memory[(slice(1, -1),) * 4].transpose(np.argsort(order))
    copy(array, target, threads)
    np.testing.assert_array_equal(target, array)
    assert np.count_nonzero(memory) == array.size


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("dtype", (np.uint16, np.float32, np.int64))
@pytest.mark.parametrize("length", (5000, 70001), ids=("least pieces", "most pieces"))
def test_copy_of_long_rows(length, dtype, threads):
    """A copy of a few long rows, which tasks share by pieces, must be exact: the taps of a filter for all channels."""
    array = np.random.default_rng(0).integers(1, 2**15, (length, 16)).astype(dtype)
    memory = np.zeros((16, length + 2), dtype)
    target = memory[:, 1:-1].transpose()
    copy(array, target, threads)
    np.testing.assert_array_equal(target, array)
    assert not memory[:, [0, -1]].any()


def test_copy_of_eight_axes():
    """A copy of more axes than Cython's memoryviews have must be exact."""
    array = np.random.default_rng(0).integers(0, 2**31, (2, 3, 2, 2, 3, 2, 2, 3)).astype(np.int32)
    target = np.zeros(array.shape[::-1], np.int32).transpose()
    copy(array, target, 2)
    np.testing.assert_array_equal(target, array)


def channels_last(array):
    """The same elements, with the second axis adjacent in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


@problems
@kernels
def test_only_what_is_skipped(problem, skipped, name, counted):
    """Channels first, only skipped tensors may be copied. The bits must equal channels last, which copies nothing."""
    operation, tensors = OPERATIONS[name], real_tensors(problem, "float32")
    if name == "conv" and problem.name != "stride_filters_inside_tasks":
        skipped = skipped.replace("w", "")
    first = operation.call(problem, tensors, algorithm="winograd")
    assert counted == ([len(skipped)] if skipped else [])
    out = channels_last(np.empty_like(first))
    assert bits(operation.call(problem, tensors, layout=channels_last, out=out, algorithm="winograd")) == bits(first)
    assert len(counted) == bool(skipped)


@problems
@kernels
def test_layouts_change_no_bit(problem, skipped, name):
    operation, tensors = OPERATIONS[name], real_tensors(problem, "float32")
    plain = operation.call(problem, tensors, algorithm="winograd")
    for layout in INPUTS:
        assert bits(operation.call(problem, tensors, layout=layout, algorithm="winograd")) == bits(plain)
    for layout in OUTPUTS:
        out = layout(np.full(plain.shape, 99, np.float32))
        memory = out if out.base is None else out.base
        before = bits(memory)
        assert bits(operation.call(problem, tensors, out=out, algorithm="winograd")) == bits(plain)
        out[...] = 99
        assert bits(memory) == before, "memory outside of the elements of out has changed"


@kernels
def test_out_of_range_is_direct(name, counted):
    """Values out of range must be computed directly, also after the operands have been copied."""
    problem = next(iter(SKIPPING))
    operation, tensors = OPERATIONS[name], real_tensors(problem, "float32")
    spoiled = operation.reads[0]
    getattr(tensors, spoiled)[..., 0] = np.nan
    assert bits(operation.call(problem, tensors, algorithm="winograd")) == bits(
        operation.call(problem, tensors, algorithm="direct")
    )
    assert counted == [2 if name == "conv" else 3]
