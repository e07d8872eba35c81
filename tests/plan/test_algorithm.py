"""Refusals, the accuracy contract on larger layers, and the promises of plans."""

import sys
from contextlib import nullcontext
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operations import DTYPES, dtype_of

import convgrad_cy as cg
from convgrad_cy import dtypes
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd import tilings
from convgrad_cy.cpu.winograd import walks as tile_walks
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, AxisWalk, ConvProblem, conv_size

FLOAT32 = next(row for row in dtypes.TABLE if row.name == "float32")
# The tiles of x86-64-v4, -v3 and -v2, as in pyx/tile/ukernel.h.
MACHINES = [
    Machine(*tile, multiplies_pairs=False, cache_bytes=32 << 20, threads=1)
    for tile in ((6, 256, 64), (6, 64, 32), (4, 32, 16))
]
RANDOM = np.random.default_rng(4)


def problem_of(batch, groups, ins, outs, x, kernel, stride=(1, 1, 1), dilation=(1, 1, 1)):
    pad = tuple(k // 2 for k in kernel)
    y = tuple(conv_size(*axis, (p, p)) for *axis, p in zip(x, kernel, stride, dilation, pad, strict=True))
    return ConvProblem(batch, groups, ins, outs, x, y, kernel, stride, dilation, pad)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if "float" in name])
def test_threads_choose_nothing(dtype):
    """The number of threads must not change the choice: the bits of a result would depend on it."""
    shapes = (2, 64, 30, 29), (70, 64, 3, 3), (2, 70, 30, 29)
    x, w, dy = (RANDOM.standard_normal(shape).astype(dtype_of(dtype)) for shape in shapes)

    def results():
        for name in ("auto", "direct" if dtype == "float64" else "winograd"):
            yield cg.conv(x, w, padding=1, algorithm=name)
            yield cg.conv_backward_data(dy, w, x.shape, padding=1, algorithm=name)
            yield cg.conv_backward_filter(x, dy, w.shape, padding=1, algorithm=name)

    expected = [result.tobytes() for result in results()]
    for threads in (1, 2, 3, 5):
        with cg.num_threads(threads):
            assert [result.tobytes() for result in results()] == expected


ARRAYS = {"x": (2, 8, 9, 9), "w": (8, 8, 3, 3)}
REFUSED = [
    ({"stride": 2}, np.float32, "these taps, strides and dilations"),
    ({"stride": 2, "dilation": 3}, np.float32, "these taps, strides and dilations"),
    ({}, np.float64, "the dtype float64"),
    ({}, np.int32, "the dtype int32"),
]


@pytest.mark.parametrize("keywords, dtype, reason", REFUSED)
def test_refused(keywords, dtype, reason):
    x, w = (np.zeros(shape, dtype) for shape in ARRAYS.values())
    with pytest.raises(ValueError) as caught:
        cg.conv(x, w, algorithm="winograd", **keywords)
    assert str(caught.value) == f"algorithm must be 'auto' or 'direct' for {reason}, not 'winograd'"


@pytest.mark.parametrize("kernel, reason", [(1, "a filter of one tap"), (20000, "these taps, strides and dilations")])
def test_refused_kernels(kernel, reason):
    """Kernels must be refused with the expected reason. The second one would be cut into 5000 pieces."""
    x, w = np.zeros((1, 1, 20000), np.float32), np.zeros((1, 1, kernel), np.float32)
    y = cg.conv(x, w)
    calls = (
        lambda: cg.conv(x, w, algorithm="winograd"),
        lambda: cg.conv_backward_data(y, w, x.shape, algorithm="winograd"),
        lambda: cg.conv_backward_filter(x, y, w.shape, algorithm="winograd"),
    )
    for call in calls:
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == f"algorithm must be 'auto' or 'direct' for {reason}, not 'winograd'"


@pytest.mark.parametrize("kernel", (3, 4))
def test_strides(kernel):
    """conv and wgrad must need equal numbers of taps in each phase; dgrad must make one walk of each phase."""
    x, w = np.zeros((2, 8, 8, 8), np.float32), np.zeros((8, 8, kernel, kernel), np.float32)
    dy = cg.conv(x, w, stride=2, padding=1)
    options = {"stride": 2, "padding": 1, "algorithm": "winograd"}
    for call in (
        lambda: cg.conv(x, w, **options),
        lambda: cg.conv_backward_filter(x, dy, w.shape, **options),
    ):
        with nullcontext() if kernel == 4 else pytest.raises(ValueError, match="these taps, strides and dilations"):
            call()
    cg.conv_backward_data(dy, w, x.shape, **options)


@pytest.mark.parametrize("batch, ins, outs", [(0, 4, 4), (2, 0, 4)])
def test_nothing_to_compute(batch, ins, outs):
    x, w = np.ones((batch, ins, 6, 6), np.float32), np.ones((outs, ins, 3, 3), np.float32)
    result = cg.conv(x, w, algorithm="winograd")
    assert result.shape == (batch, outs, 4, 4) and not result.any()


@pytest.mark.tuning
def test_auto_is_winograd_where_it_is_chosen():
    x, w = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((2, 64, 28, 28), (64, 64, 3, 3)))
    auto, direct, tiled = (cg.conv(x, w, padding=1, algorithm=name) for name in ("auto", "direct", "winograd"))
    assert (auto == tiled).all() and (auto != direct).any()


problems = st.builds(
    problem_of,
    batch=st.integers(1, 20),
    groups=st.integers(1, 8),
    ins=st.integers(1, 600),
    outs=st.integers(1, 600),
    x=st.tuples(st.integers(1, 20), st.integers(1, 60), st.integers(1, 60)),
    kernel=st.tuples(*[st.integers(1, 12)] * 3),
    stride=st.tuples(*[st.integers(1, 3)] * 3),
    dilation=st.tuples(*[st.integers(1, 3)] * 3),
)


@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
@given(problem=problems, machine=st.sampled_from(MACHINES), tiling=st.sampled_from(tilings.TILINGS))
def test_plans(operation, problem, machine, tiling):
    """Walks must reach every target once, in whole vectors and strips. Two threads must change no other field."""
    if tilings.tiling_refusal(operation, problem, FLOAT32) is not None:
        return
    extents = problem.x if operation == DGRAD else problem.y
    defined = problem.backward_walks() if operation == DGRAD else [problem.forward_walk()]
    made = winograd.plan(operation, problem, tiling, machine)
    rows, fields = made.steps.tolist(), len(AxisWalk._fields)
    walks = [[AxisWalk(*row[i * fields : (i + 1) * fields]) for i in range(3)] for row in rows]
    held = [row[-5:-2] for row in rows]
    assert sum(
        prod(axis.positions * count for axis, count in zip(*each, strict=True))
        for each in zip(walks, held, strict=True)
    ) == sum(prod(axis.positions * axis.taps for axis in walk) for walk in defined)
    begin = positions = 0
    while begin < len(rows):  # a part of the result: all walks that are added, of each sibling
        added, siblings = rows[begin][-2:]
        own = range(begin, begin + added * siblings)
        positions += sum(prod(axis.positions for axis in walks[i]) for i in own[::added])
        for i in own:
            assert rows[i][-2:] == [added, siblings]
            for axis, first, count, extent in zip(walks[i], walks[begin], held[i], extents, strict=True):
                assert axis.source_tap == axis.source_step
                assert 1 <= count <= axis.taps == first.taps <= tile_walks.MOST_TAPS
                assert axis.positions <= first.positions
                last = axis.target_begin + (axis.positions - 1) * axis.target_step
                assert operation == WGRAD or 0 <= last < extent
        begin = own.stop
    assert begin == len(rows)
    assert operation == WGRAD or positions == prod(extents)
    assert len(np.unique(made.steps, axis=0)) == len(made.steps)
    if winograd.choose(operation, problem, tiling, machine.tile).tasks > 1:  # test_cuts.py tests one task, too
        two = winograd.plan(operation, problem, tiling, machine._replace(threads=2))
        assert made.chosen == two.chosen._replace(threads=1) and (made.steps == two.steps).all()
    assert made.chosen.chunk % (machine.vector_bytes // 4) == 0
    outputs = problem.x_channels if operation == DGRAD else problem.y_channels
    lanes, strip = machine.vector_bytes // 4, machine.tile_column_bytes // 4
    assert made.chosen.outputs % min(strip, -(-outputs // lanes) * lanes) == 0
    assert made.chosen.filters_kept % made.chosen.outputs == 0
    assert min(made.chosen.images, made.chosen.chunk, made.chosen.outputs, made.chosen.slices) >= 1


def test_algorithm_of_this_package(monkeypatch):
    """The option --algorithm must reach the calls."""
    sys.path.append(str(Path(__file__).parents[2]))
    from bench import suites
    from bench.peers import ALGORITHM, convgrad_cy

    seen = []
    monkeypatch.setattr(convgrad_cy.cg, "conv", lambda *arrays, **options: seen.append(options["algorithm"]))
    case = suites.rows(["tiny"], match="^tiny_8x8$")[0].case
    tensors = [np.zeros(shape) for shape in (case.x, case.w, case.y)]
    for chosen in ("auto", "direct"):
        monkeypatch.setenv(ALGORITHM, chosen)
        convgrad_cy.Library(threads=1).operation(case, "fprop", *tensors)()
    assert seen == ["auto", "direct"]


@pytest.mark.parametrize(
    "channels, outputs, groups, threads, strips, together",
    [
        (256, 64, 1, 1, 1, 32),
        (128, 64, 1, 1, 1, 16),  # one strip: its channels make tasks
        (16, 64, 1, 1, 1, 8),  # no task has fewer
        (256, 64, 1, 16, 1, 16),  # more threads want more tasks
        (256, 512, 1, 1, 1, 32),  # eight strips: a task each
        (256, 1024, 1, 1, 2, 32),
        (64, 2048, 1, 1, 4, 32),
        (64, 4096, 1, 1, 4, 32),  # no task has more
        (64, 2048, 1, 16, 2, 32),
        (64, 512, 4, 1, 4, 32),
    ],
)
def test_filters_of_a_task(channels, outputs, groups, threads, strips, together):
    """Tasks that transform filters must have few strips and channels, so that there are enough tasks."""
    problem = problem_of(256, groups, channels, outputs, (1, 28, 28), (1, 3, 3))
    chosen = winograd.plan(FPROP, problem, tilings.TILINGS[0], MACHINES[0]._replace(threads=threads)).chosen
    assert chosen.filters_kept > 0 and (chosen.filter_strips, chosen.filter_channels) == (strips, together)
