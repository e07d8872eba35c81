"""Plans for many threads: enough tasks, none empty, each result covered once, no task larger than for two threads."""

from dataclasses import replace
from itertools import pairwise
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import plan_of
from test_plan import FLOAT32, TILES, depthwise, problems, unpacked

from convgrad_cy import dtypes
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.machine.tuning import WIDE
from convgrad_cy.cpu.plan.cuts import Tasks, best_cut, cycles_until_end, halves
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd.tilings import TILINGS
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

THREADS = st.integers(2, 128)


def test_time():
    """Threads take tasks in turn: two threads need three rounds for five equal tasks, and a long task takes its time.

    A late thread costs a part of a task.
    """
    assert cycles_until_end([Tasks(5, 2.0)], 2, 0) == 6.0
    assert cycles_until_end([Tasks(5, 2.0)], 2, 0.5) == 7.0
    assert cycles_until_end([Tasks(4, 1.0), Tasks(1, 10.0)], 4, 0) == 10.0


@given(
    first=st.tuples(st.integers(1, 40), st.floats(1, 9)),
    others=st.lists(st.tuples(st.integers(1, 200), st.floats(1, 9))),
    threads=THREADS,
)
def test_best(first, others, threads):
    """The best choice must never end later, and must be the first unless another ends much earlier."""

    def ends(one):  # one loop after the other
        late_part = WIDE.late_part if threads > WIDE.tuned_threads else 0
        return cycles_until_end([Tasks(*one)], threads, late_part) + cycles_until_end([Tasks(1, 0.0)], threads, 0)

    best = best_cut(first, others, lambda one: [[Tasks(*one)], [Tasks(1, 0.0)]], threads, WIDE)
    assert best == first or ends(best) <= WIDE.cut_gain * ends(first)


@given(least=st.integers(1, 64), count=st.integers(1, 40))
def test_halves(least, count):
    found = halves(least * count, least)
    assert found[0] == least * count and found[-1] == least
    assert all(one % least == 0 and other < one for one, other in pairwise(found))


def pieces(extent, size):
    """The pieces (first, behind the last) of a cut extent."""
    return [(first, min(first + size, extent)) for first in range(0, extent, size)]


def scratch(problem, operation, windows, blocks):
    """Elements of a task's window and sums, for the walk that has most."""
    seen = blocks.images * max(prod(part.extent for part in window) for window in windows) * blocks.chunk
    if operation == WGRAD:
        return seen + blocks.chunk * blocks.outputs * prod(problem.kernel)
    return seen + blocks.images * max(prod(part.positions for part in window) for window in windows) * blocks.outputs


@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
@given(
    problem=problems | depthwise,
    tile=st.sampled_from(TILES),
    dtype=st.sampled_from(dtypes.TABLE),
    adjacent=st.booleans(),
    threads=THREADS,
)
def test_direct(operation, problem, tile, dtype, adjacent, threads):
    """The walks and chunks must be those for two threads; tasks must be no larger, and as many or more."""
    tile = Machine(*tile, threads=2)
    two, many = (unpacked(plan_of(operation, problem, dtype, adjacent, tile._replace(threads=n))) for n in (2, threads))
    (walks, windows, blocks), (own_walks, own_windows, own) = two, many
    assert walks == own_walks
    same = dict.fromkeys(("images", "outputs", "groups", "threads", "chunk", "nontemporal", "pack_channels"), 1)
    assert own._replace(**same) == blocks._replace(**same)
    assert own.pack_channels <= blocks.pack_channels and (own.pack_channels > 0 or own.lanewise or operation == WGRAD)
    assert 1 <= own.outputs <= blocks.outputs and own.images >= 1 and 1 <= own.chunk <= blocks.chunk
    assert own.chunk == blocks.chunk or operation == WGRAD
    if operation == WGRAD:
        assert (own.images, own_windows) == (blocks.images, windows)
    if threads <= WIDE.tuned_threads:
        assert many == two
    elif not own.lanewise:
        assert scratch(problem, operation, own_windows, own) <= scratch(problem, operation, windows, blocks) * 1.5 + 64
    for window, walk in zip(own_windows, own_walks, strict=True):
        for part, axis in zip(window, walk, strict=True):
            cut = pieces(axis.positions, part.positions)
            assert all(begin < end for begin, end in cut) and sum(end - begin for begin, end in cut) == axis.positions


@given(problem=problems, tiling=st.sampled_from(TILINGS), tile=st.sampled_from(TILES), threads=THREADS)
def test_winograd(problem, tiling, tile, threads):
    """Tiles, chunks of fprop and dgrad, and boxes and slices of wgrad must equal the plan for one thread."""
    problem = replace(problem, stride=(1, 1, 1), kernel=(1, 3, 3), x=(1, *problem.x[1:]), pad_begin=(0, 1, 1))
    problem = replace(problem, y=problem.x)
    machine = Machine(*tile, threads=1)
    for operation in (FPROP, DGRAD, WGRAD):
        one, many = (winograd.plan(operation, problem, tiling, machine._replace(threads=n)) for n in (1, threads))
        same = dict.fromkeys(("threads", "outputs", "filter_strips", "filter_channels"), 1)
        same |= {"tiles_kept": False, "filters_kept": 0}
        same |= {"chunk": 1} if operation == WGRAD else {"images": 1}
        assert many.chosen._replace(**same) == one.chosen._replace(**same)
        assert 1 <= many.chosen.outputs <= one.chosen.outputs
        assert (many.chosen.filters_kept > 0) == (one.chosen.filters_kept > 0)
        if threads <= min(WIDE.tuned_threads, winograd.choose(operation, problem, tiling, machine.tile).tasks):
            assert many.chosen._replace(threads=1) == one.chosen
        if operation == WGRAD:
            assert (many.steps == one.steps).all()
            assert many.chosen.chunk % (tile[2] // 4) == 0 and many.chosen.outputs % (tile[2] // 4) == 0
        else:
            boxes = slice(36, 39)  # tiles of a box
            assert (many.steps[:, boxes] >= 1).all()
            assert prod(many.steps[0, boxes]) * many.chosen.images <= prod(one.steps[0, boxes]) * one.chosen.images


def tasks_of(operation, problem, threads):
    """The number of tasks of a direct plan of one walk."""
    (walk,), (window,), blocks = unpacked(
        plan_of(operation, problem, FLOAT32, False, Machine(*TILES[0], threads=threads))
    )
    boxes = prod(len(pieces(axis.positions, part.positions)) for axis, part in zip(walk, window, strict=True))
    boxes *= len(pieces(problem.batch, blocks.images))
    parts = len(pieces(problem.y_channels, blocks.outputs))
    return parts * (boxes if operation == FPROP else blocks.slices * len(pieces(problem.x_channels, blocks.chunk)))


@pytest.mark.tuning
@pytest.mark.parametrize("threads", (8, 16, 32, 64, 128))
@pytest.mark.parametrize("operation", (FPROP, WGRAD))
@pytest.mark.parametrize(
    ("channels", "outputs", "extent", "kernel"),
    ((64, 64, 56, 3), (256, 64, 56, 1), (128, 512, 28, 1), (256, 256, 14, 3), (512, 512, 14, 3), (2048, 512, 14, 1)),
)
def test_enough(operation, channels, outputs, extent, kernel, threads):
    """With 4 million products for each thread, threads must idle for at most a third of their time."""
    problem = ConvProblem(
        8,
        1,
        channels,
        outputs,
        (1, extent, extent),
        (1, extent, extent),
        (1, kernel, kernel),
        pad_begin=(0, kernel // 2, kernel // 2),
    )
    if problem.multiplications < 4_000_000 * threads:
        pytest.skip("the layer has less work")
    tasks = tasks_of(operation, problem, threads)
    assert tasks / (-(-tasks // threads) * threads) >= 2 / 3, tasks
