"""The promises of plans to kernels: windows hold every tap, blocks fit, and nothing depends on threads."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import plan_of

import convgrad_cy
from convgrad_cy import calls, dtypes
from convgrad_cy.cpu import direct, small_groups
from convgrad_cy.cpu.direct.mirrored import is_better_mirrored
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.machine.register_tile import tile_cycles
from convgrad_cy.cpu.machine.tuning import tuning_of
from convgrad_cy.cpu.plan.steps import Blocks, WindowAxis
from convgrad_cy.cpu.rewrites.views import are_positions_adjacent
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, AxisWalk, ConvProblem, backward_axis_phases, conv_size

FLOAT32 = dtypes.TABLE[2]
# Tiles of 6 x 4 vectors of 64 bytes, 6 x 2 of 32 and 4 x 2 of 16, as in pyx/tile/ukernel.h.
TILES = [(6, 256, 64, True, 32 << 20), (6, 64, 32, False, 8 << 20), (4, 32, 16, False, 1 << 20)]


def problem_of(batch, groups, ins, outs, x, kernel, stride):
    y = tuple(conv_size(n, k, s, 1, (k, k)) for n, k, s in zip(x, kernel, stride, strict=True))
    return ConvProblem(batch, groups, ins, outs, x, y, kernel, stride, (1, 1, 1), kernel)


problems = st.builds(
    problem_of,
    batch=st.integers(1, 20),
    groups=st.integers(1, 8),
    ins=st.integers(1, 600),
    outs=st.integers(1, 600),
    x=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 40)),
    kernel=st.tuples(*[st.integers(1, 5)] * 3),
    stride=st.tuples(*[st.integers(1, 4)] * 3),
)


depthwise = st.builds(
    problem_of,
    batch=st.integers(1, 20),
    groups=st.integers(2, 600),
    ins=st.just(1),
    outs=st.just(1),
    x=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 40)),
    kernel=st.tuples(*[st.integers(1, 5)] * 3),
    stride=st.tuples(*[st.integers(1, 4)] * 3),
)


def unpacked(made):
    """(walks, windows, blocks) of a plan."""
    fields = len(AxisWalk._fields)
    walks = [[AxisWalk(*row[i * fields : (i + 1) * fields]) for i in range(3)] for row in made.steps.tolist()]
    fields, start = len(WindowAxis._fields), 3 * fields
    windows = [
        [WindowAxis(*row[start + i * fields : start + (i + 1) * fields]) for i in range(3)]
        for row in made.steps.tolist()
    ]
    return walks, windows, Blocks(*made.blocks.tolist())


@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
@given(
    problem=problems | depthwise,
    tile=st.sampled_from(TILES),
    dtype=st.sampled_from(dtypes.TABLE),
    adjacent=st.booleans(),
)
def test_blocks(operation, problem, tile, dtype, adjacent):
    walks, windows, blocks = unpacked(plan_of(operation, problem, dtype, adjacent, Machine(*tile, threads=2)))
    itemsize, tuning = dtype.compute_itemsize, tuning_of(tile[2])
    channels, outputs = problem.x_channels, problem.y_channels
    if operation == DGRAD:
        channels, outputs = outputs, channels
    if blocks.lanewise:
        lanes = tile[2] // itemsize
        assert problem.groups > 1
        assert max(channels, outputs) <= max(1, lanes // 2)
        sliding = channels == outputs == 1
        whole = blocks.outputs % lanes == 0 or blocks.outputs == problem.groups
        assert blocks.outputs <= tile[1] // itemsize or (sliding and whole)
        assert blocks.outputs % outputs == 0  # whole groups
        for axis, window in enumerate(windows[0]):
            assert 1 <= window.positions <= max(walk[axis].positions for walk in walks)
        return
    assert 1 <= blocks.chunk <= channels
    assert 1 <= blocks.outputs <= outputs
    if not blocks.positions_across:  # a block of outputs begins at a strip
        assert blocks.outputs == outputs or blocks.outputs % (tile[1] // itemsize) == 0
    assert operation != WGRAD or not blocks.positions_across
    for walk, window in zip(walks, windows, strict=True):
        positions = blocks.images * prod(axis.positions for axis in window)
        elements = blocks.images * prod(axis.extent for axis in window) * blocks.chunk
        assert elements < 2**31  # its offsets are int32
        held = itemsize // 2 if blocks.pairs and operation != WGRAD else itemsize
        assert elements * held <= tuning.window_bytes or blocks.chunk == positions == 1
        assert not blocks.pairs or (dtype.name == "bfloat16" and tile[3])
        most_sums = tuning.larger_sums_bytes if operation == WGRAD or blocks.packs else tuning.sums_bytes
        assert positions * blocks.outputs * itemsize <= most_sums or positions <= tile[0]
        for i, own in enumerate(window):  # one box for all walks, but no longer than a walk
            longest = max(other[i].positions for other in windows)
            assert own.positions == (longest if blocks.phases > 1 else min(walk[i].positions, longest))
        assert blocks.slices <= max(1, problem.batch * prod(axis.positions for axis in walk))


@pytest.mark.parametrize("operation, channels", ((FPROP, (0, 5)), (DGRAD, (5, 0))))
def test_nothing_to_sum(operation, channels):
    """Extents of blocks must not be zero, even without channels: the kernels divide by them."""
    problem = problem_of(2, 1, *channels, (1, 4, 4), (1, 3, 3), (1, 1, 1))
    blocks = unpacked(plan_of(operation, problem, FLOAT32, True, Machine(*TILES[0], threads=1)))[2]
    assert min(blocks.images, blocks.chunk, blocks.outputs, blocks.slices) == 1


@pytest.mark.tuning
def test_choices():
    """Tiles must run across positions for few output channels. Small filters of many positions must have slices."""

    def blocks(operation, ins, outs, extent, groups=1):
        problem = problem_of(8, groups, ins, outs, (1, extent, extent), (1, 3, 3), (1, 1, 1))
        return unpacked(plan_of(operation, problem, FLOAT32, True, Machine(*TILES[0], threads=2)))[2]

    assert blocks(FPROP, 64, 3, 56).positions_across and blocks(FPROP, 1, 2, 56, groups=64).lanewise
    assert not blocks(FPROP, 3, 64, 56).positions_across
    assert blocks(DGRAD, 3, 64, 56).positions_across
    assert blocks(FPROP, 3, 64, 60).positions_across  # rows of 64 positions, adjacent as in all problems here
    assert blocks(WGRAD, 16, 16, 56).slices > 1
    assert blocks(WGRAD, 512, 512, 56).slices == 1


@pytest.mark.tuning
def test_tile_cycles():
    """Whole tiles must run at two multiplications a cycle. A lone row or vector must wait for its additions."""
    tile = Machine(*TILES[0], threads=1).tile
    assert tile_cycles(60, 128, tile, 4) == 10 * 2 * 12
    assert tile_cycles(1, 16, tile, 4) == 4
    assert tile_cycles(7, 64, tile, 4) == 12 + tile_cycles(1, 64, tile, 4)


@pytest.mark.tuning
def test_mirrored():
    """wgrad of few channels of y must be mirrored: y is then the source, and its walk is as in dgrad."""
    machine = Machine(*TILES[0], 1)
    problem = ConvProblem(2, 1, 32, 1, (1, 1, 60), (1, 1, 60), (1, 1, 7), pad_begin=(0, 0, 3))
    assert is_better_mirrored(problem, machine.tile, 4)
    for other in (
        replace(problem, y_channels=5),
        replace(problem, x_channels=3),
        replace(problem, groups=2),
        replace(problem, stride=(1, 1, 2)),
        replace(problem, x=(1, 1, 91)),
    ):
        assert not is_better_mirrored(other, machine.tile, 4)
    (step,) = plan(WGRAD, problem, FLOAT32, False, machine, True).steps
    assert AxisWalk(*step[20:30]) == backward_axis_phases(60, 60, 7, 1, 1, 3)[0]


@pytest.mark.tuning
@pytest.mark.parametrize("machine", [Machine(*tile, 1) for tile in TILES])
def test_pointwise_is_mirrored(machine):
    """The columns of a pointwise wgrad's tiles must be the channels that fill the vectors."""
    strip = machine.tile_column_bytes // 4
    problem = ConvProblem(2, 1, 6 * strip, strip + 1, (1, 1, 60), (1, 1, 60), (1, 1, 1))
    assert is_better_mirrored(problem, machine.tile, 4)
    assert not is_better_mirrored(replace(problem, x_channels=strip + 1, y_channels=6 * strip), machine.tile, 4)
    assert not is_better_mirrored(replace(problem, y_channels=6 * strip), machine.tile, 4)


@pytest.mark.tuning
def test_gathered_windows_serve_more_outputs():
    """Windows of every second position must serve more outputs, in the boxes and slices of other layouts."""
    machine = Machine(*TILES[0], 2)
    problem = ConvProblem(8, 1, 512, 1024, (1, 28, 28), (1, 14, 14), (1, 1, 1), stride=(1, 2, 2))
    last, first = (unpacked(plan_of(WGRAD, problem, FLOAT32, adjacent, machine)) for adjacent in (False, True))
    assert (last[2].chunk, last[2].outputs, first[2].chunk, first[2].outputs) == (256, 128, 256, 256)
    assert last[:2] == first[:2]
    assert last[2].slices == first[2].slices
    for other in (replace(problem, stride=(1, 2, 1), x=(1, 28, 14)), replace(problem, y_channels=128)):
        last, first = (unpacked(plan_of(WGRAD, other, FLOAT32, adjacent, machine)) for adjacent in (False, True))
        assert last == first


def test_gathered_windows_change_no_bits():
    rng = np.random.default_rng(3)
    for draw in (rng.standard_normal, lambda shape: rng.integers(-9, 9, shape)):
        x, dy = (draw(shape).astype(np.float32) for shape in ((2, 300, 9, 11), (2, 200, 5, 6)))
        first = convgrad_cy.conv_backward_filter(x, dy, (200, 300, 1, 1), stride=2)
        near = [np.ascontiguousarray(np.moveaxis(array, 1, -1)) for array in (x, dy)]
        last = convgrad_cy.conv_backward_filter(*near, (200, 300, 1, 1), stride=2, data_format="NXC")
        np.testing.assert_array_equal(first, last)
    seen = x[:, :, ::2, ::2].reshape(2, 300, 30)
    np.testing.assert_array_equal(first[:, :, 0, 0], np.einsum("ncp,nop->oc", seen, dy.reshape(2, 200, 30)))


@pytest.mark.parametrize("layout, adjacent", (("NCX", True), ("NXC", False)))
@pytest.mark.parametrize("groups, channels", ((1, 16), (1, 1), (16, 1), (4, 4)))
def test_layouts_are_seen(monkeypatch, layout, adjacent, groups, channels):
    """Adjacent positions must be seen.

    In groups of one channel, the stride between channels must not matter. With one channel in all, y shows the layout.
    """
    seen = []
    for family in (small_groups, direct):
        monkeypatch.setattr(
            family, "are_positions_adjacent", lambda *both: seen.append(are_positions_adjacent(*both)) or seen[-1]
        )
    calls.forget()
    count = groups * channels
    x = np.ones((1, count, 9, 9) if layout == "NCX" else (1, 9, 9, count), np.float32)
    convgrad_cy.conv(x, np.ones((16, channels, 3, 3), np.float32), groups=groups, data_format=layout)
    calls.forget()
    assert set(seen) == {adjacent}


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("batch", "size", "kernel", "stride", "packs"),
    (
        (8, 7, 3, 1, True),  # windows are small compared with the taps that see them
        (8, 7, 1, 1, False),  # a window for each block of outputs would cost more than one filter in memory
        (8, 14, 2, 2, False),
        (1, 4, 4, 1, True),  # one position
        (8, 28, 3, 1, False),  # many
    ),
)
def test_tasks_pack_large_filters_of_few_positions(batch, size, kernel, stride, packs):
    x, y = (1, size, size), (1, *[(size - kernel) // stride + 1] * 2)
    problem = ConvProblem(batch, 1, 1024, 1024, x, y, (1, kernel, kernel), (1, stride, stride))
    *_, blocks = unpacked(plan_of(FPROP, problem, FLOAT32, False, Machine(*TILES[0], 2)))
    assert blocks.packs == packs
