"""What the plans promise the kernels: blocks that fit the tile, slices that do not depend on the threads."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convgrad_cy import dtypes
from convgrad_cy.plan import (
    DGRAD,
    FILTER_BYTES,
    FPROP,
    PANEL_BYTES,
    SERIAL_MULTIPLICATIONS,
    SUMS_BYTES,
    WGRAD,
    Blocks,
    Machine,
    plan,
)
from convgrad_cy.problem import ConvProblem, conv_size

# Tiles of 6 x 4 vectors of 64 bytes, 6 x 2 of 32 and 4 x 2 of 16: those of pyx/ukernel.h.
TILES = [(6, 256, 64), (6, 64, 32), (4, 32, 16)]

extents = st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 40))
channels = st.integers(1, 600)


def problem_of(batch, groups, ins, outs, x, kernel, stride):
    y = tuple(conv_size(n, k, s, 1, (k, k)) for n, k, s in zip(x, kernel, stride, strict=True))
    return ConvProblem(batch, groups, ins, outs, x, y, kernel, stride, (1, 1, 1), kernel)


problems = st.builds(
    problem_of,
    batch=st.integers(1, 20),
    groups=st.integers(1, 8),
    ins=channels,
    outs=channels,
    x=extents,
    kernel=st.tuples(*[st.integers(1, 5)] * 3),
    stride=st.tuples(*[st.integers(1, 4)] * 3),
)


@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
@given(problem=problems, tile=st.sampled_from(TILES), dtype=st.sampled_from(dtypes.TABLE), last=st.booleans())
def test_blocks(operation, problem, tile, dtype, last):
    made = plan(operation, problem, dtype, last, Machine(*tile, threads=2))
    blocks = Blocks(*made.blocks.tolist())
    itemsize = dtype.compute_itemsize
    tile_columns = tile[1] // itemsize
    widest = max(blocks.columns, tile_columns)
    assert min(blocks) >= (0 if not last else 1)
    assert blocks.columns_follow_memory == last
    # A block that is not the whole extent begins and ends with a whole tile.
    taps = prod(problem.kernel) * problem.x_channels
    positions = problem.batch * max(prod(axis[0] for axis in walk) for walk in made.walks.tolist())
    extents = {
        FPROP: (positions, problem.y_channels),
        DGRAD: (positions, problem.x_channels),
        WGRAD: (problem.y_channels, taps),
    }[operation]
    rows, columns = extents if last else extents[::-1]
    assert blocks.rows == rows or blocks.rows % tile[0] == 0
    assert blocks.columns == columns or blocks.columns % tile_columns == 0
    # What a task keeps in the cache is within its share, or one tile.
    assert blocks.rows * blocks.columns * itemsize <= SUMS_BYTES or blocks.rows <= tile[0]
    assert widest * blocks.depth * itemsize <= max(PANEL_BYTES, FILTER_BYTES, tile_columns * blocks.depth * itemsize)
    assert 1 <= blocks.slices <= max(1, positions)


@given(problem=problems, last=st.booleans())
def test_threads_change_nothing_else(problem, last):
    """Else the bits of a result would depend on them."""
    for operation in (FPROP, DGRAD, WGRAD):
        one, many = (
            Blocks(*plan(operation, problem, dtypes.TABLE[2], last, Machine(*TILES[0], threads)).blocks.tolist())
            for threads in (1, 7)
        )
        assert one == many._replace(threads=1)
        assert many.threads == (7 if problem.multiplications >= SERIAL_MULTIPLICATIONS else 1)


def test_slices():
    """A small filter over many positions is cut along the positions; a large one is not."""

    def slices(channels, extent):
        problem = problem_of(8, 1, channels, channels, (1, extent, extent), (1, 3, 3), (1, 1, 1))
        return Blocks(
            *plan(WGRAD, problem, dtypes.TABLE[2], True, Machine(*TILES[0], threads=2)).blocks.tolist()
        ).slices

    assert slices(16, 56) > slices(16, 4) > 1
    assert slices(512, 56) == 1
