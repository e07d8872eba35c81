"""Boxes of positions, their windows, and their use in plans."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_plan import FLOAT32, TILES, problem_of, problems, unpacked

from convgrad_cy import dtypes
from convgrad_cy.cpu.direct.boxes import box_of, compact_box_of, window_axis
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.machine.tuning import WIDE
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, backward_axis_phases, conv_size, forward_axis


@given(
    geometry=st.tuples(st.integers(1, 30), st.integers(1, 6), st.integers(1, 5), st.integers(1, 9), st.integers(0, 8)),
    positions=st.integers(1, 12),
    contiguous=st.booleans(),
)
def test_window_axis(geometry, positions, contiguous):
    """Each (position, tap) must have a place in the window, and no place may stand for two elements of the source."""
    x, kernel, stride, dilation, pad = geometry
    y = max(1, conv_size(x, kernel, stride, dilation, (pad, pad)))
    for axis in (forward_axis(x, y, kernel, stride, dilation, pad), *backward_axis_phases(x, y, *geometry[1:])):
        window = window_axis(axis, positions, contiguous)
        source_at = {}
        for p in range(positions):
            for t in range(axis.taps):
                place = p * window.step + t * window.tap + window.begin
                assert 0 <= place < window.extent
                source = p * axis.source_step + t * axis.source_tap
                assert source_at.setdefault(place, source) == source
        assert window.extent <= axis.taps * positions or not window.apart
        assert window.step == 1 or not contiguous


@given(extents=st.tuples(*[st.integers(1, 60)] * 3), batch=st.integers(1, 40), most=st.integers(1, 300))
def test_box(extents, batch, most):
    """A box must have at most the given positions, and whole inner axes before outer ones."""
    walk = [forward_axis(n, n, 1, 1, 1, 0) for n in extents]
    box = box_of(walk, batch, most)
    assert prod(box) <= most
    for inner, outer, whole in zip(box[::-1], box[-2::-1], (*extents[::-1], batch), strict=False):
        assert inner == whole or outer == 1 or inner * 2 > min(whole, most)


@given(
    extents=st.tuples(*[st.integers(1, 300)] * 3),
    kernel=st.integers(1, 5),
    batch=st.integers(1, 40),
    most=st.integers(1, 300),
)
def test_compact_box(extents, kernel, batch, most):
    """The window must not grow, parts of rows must be whole vectors, and nothing may change without a rim."""

    def window_size(box):
        return box[0] * prod(window_axis(axis, n).extent for axis, n in zip(walk, box[1:], strict=True))

    walk = [forward_axis(n, n, kernel, 1, 1, kernel // 2) for n in extents]
    box, compact = box_of(walk, batch, most, 8), compact_box_of(walk, batch, most, 8, WIDE)
    assert window_size(compact) <= window_size(box)
    assert compact == box or (compact[3] % 8 == 0 and kernel > 1)


@pytest.mark.tuning
@pytest.mark.parametrize(
    "channels, kernel, stride, batch, tile, dtype, larger",
    (
        (64, 3, 1, 8, 0, "float32", True),
        (64, 3, 1, 8, 0, "float64", False),  # in bytes, the limit would give the same positions as before
        (64, 3, 1, 8, 1, "float32", False),  # vectors of 32 bytes
        (64, 3, 2, 8, 0, "float32", False),
        (512, 1, 1, 8, 0, "float32", False),
        (64, 1, 1, 8, 0, "float32", True),  # few products
        (64, 3, 1, 1, 0, "float32", False),  # the tasks would be too few
    ),
)
def test_boxes_of_wgrad(channels, kernel, stride, batch, tile, dtype, larger):
    """Boxes must be larger if vectors are lines and taps share elements or have few products."""
    problem = problem_of(batch, 1, channels, 64, (1, 56, 56), (1, kernel, kernel), (1, stride, stride))
    (dtype,) = (row for row in dtypes.TABLE if row.name == dtype)
    _, windows, blocks = unpacked(plan(WGRAD, problem, dtype, True, Machine(*TILES[tile], threads=2)))
    positions = blocks.images * prod(axis.positions for axis in windows[0])
    assert (WIDE.box_positions < positions <= WIDE.larger_positions) if larger else positions <= WIDE.box_positions


@pytest.mark.tuning
@pytest.mark.parametrize("operation", (FPROP, DGRAD))
@pytest.mark.parametrize(
    "groups, channels, kernel, most",
    (
        (1, 32, 1, WIDE.many_positions),
        (1, 64, 1, WIDE.sums_bytes // (64 * 4)),
        (1, 64, 3, WIDE.box_positions),
        (16, 16, 3, WIDE.box_positions),  # a task has several groups instead
    ),
)
def test_boxes_of_few_products(operation, groups, channels, kernel, most):
    """Boxes of few products must have more positions, and chunks that are no less deep."""
    problem = problem_of(8, groups, channels, channels, (1, 128, 128), (1, kernel, kernel), (1, 1, 1))
    _, windows, blocks = unpacked(plan(operation, problem, FLOAT32, False, Machine(*TILES[0], threads=2)))
    positions = blocks.images * prod(axis.positions for axis in windows[0])
    assert most / 2 < positions <= most
    assert blocks.chunk == channels


@pytest.mark.tuning
@pytest.mark.parametrize("operation", (FPROP, DGRAD))
@pytest.mark.parametrize("kernel, most", ((5, WIDE.box_positions), (7, WIDE.many_positions)))
def test_boxes_of_much_halo(operation, kernel, most):
    """A few rows under many taps must not be a box: the copy would have many more rows."""
    problem = problem_of(1, 1, 40, 40, (1, 112, 112), (1, kernel, kernel), (1, 1, 1))
    for adjacent in (False, True):
        found = plan(operation, problem, dtypes.TABLE[1], adjacent, Machine(*TILES[0], threads=2))
        _, windows, blocks = unpacked(found)
        assert most / 2 < prod(axis.positions for axis in windows[0]) <= most
        assert blocks.images == 1 and blocks.pairs


@given(problem=problems)
def test_positions_cut_no_chunk(problem):
    """The number of positions in a box must not change a sum's order."""
    for operation in (FPROP, DGRAD):
        chunks = set()
        for adjacent in (False, True):
            for many in (1, WIDE.many_positions):
                machine = Machine(*TILES[0], threads=2, own_tuning=WIDE._replace(many_positions=many))
                found = plan(operation, problem, FLOAT32, adjacent, machine)
                chunks.add((unpacked(found)[2].chunk, adjacent))
        assert len(chunks) == 2


@pytest.mark.tuning
@pytest.mark.parametrize("tile", (0, 1))
@pytest.mark.parametrize("size, most", ((28, WIDE.depth_bytes), (2, WIDE.shared_depth_bytes)))
def test_depth_of_chunks(size, most, tile):
    """Chunks must be longer unless tasks pack their part of the filter, as for few positions."""
    problem = problem_of(1, 1, 512, 64, (1, size, size), (1, 3, 3), (1, 1, 1))
    chunks = {
        unpacked(plan(FPROP, problem, FLOAT32, adjacent, Machine(*TILES[tile], threads=2)))[2].chunk
        for adjacent in (False, True)
    }
    assert len(chunks) == 1 and 0.5 * most < 9 * 4 * chunks.pop() <= most
