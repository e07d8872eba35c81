"""Which algorithm is taken, what is refused, the accuracy contract on larger layers, and the plans' promises."""

import sys
from collections import Counter
from contextlib import nullcontext
from itertools import chain
from math import prod
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import convgrad_cy as cg
from convgrad_cy import dtypes
from convgrad_cy.cpu.machines import Machine
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd import tilings
from convgrad_cy.cpu.winograd import walks as tile_walks
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem, conv_size

FLOAT32 = next(row for row in dtypes.TABLE if row.name == "float32")
# The tiles of x86-64-v4, -v3 and -v2: those of pyx/tile/ukernel.h.
MACHINES = [
    Machine(*tile, multiplies_pairs=False, cache_bytes=32 << 20, threads=1)
    for tile in ((6, 256, 64), (6, 64, 32), (4, 32, 16))
]
RANDOM = np.random.default_rng(4)


def problem_of(batch, groups, ins, outs, x, kernel, stride=(1, 1, 1), dilation=(1, 1, 1)):
    pad = tuple(k // 2 for k in kernel)
    y = tuple(conv_size(*axis, (p, p)) for *axis, p in zip(x, kernel, stride, dilation, pad, strict=True))
    return ConvProblem(batch, groups, ins, outs, x, y, kernel, stride, dilation, pad)


@pytest.mark.tuning
def test_choices():
    """Large 3x3 layers, and no others."""

    def tiled(operation, *sizes, dtype=FLOAT32):
        problem = problem_of(*sizes)
        return [tilings.tiling_of(operation, problem, dtype, False, machine.tile) is not None for machine in MACHINES]

    for operation in (FPROP, DGRAD, WGRAD):
        assert all(tiled(operation, 8, 1, 64, 64, (1, 56, 56), (1, 3, 3)))
        assert all(tiled(operation, 2, 1, 256, 256, (1, 28, 28), (1, 3, 3)))
        assert not any(tiled(operation, 8, 1, 64, 64, (1, 56, 56), (1, 1, 1)))
        assert not any(tiled(operation, 1, 1, 4, 4, (1, 8, 8), (1, 3, 3)))
        assert not any(tiled(operation, 8, 64, 1, 1, (1, 56, 56), (1, 3, 3)))
        # A pair of groups of eight channels fills a vector of 64 bytes; the tiles of wgrad are half empty without.
        eights = 8, 32, 8, 8, (1, 28, 28), (1, 3, 3)
        assert tiled(operation, *eights)[0] == (operation == WGRAD)
        split = MACHINES[0].tile._replace(splits_vectors=True)
        assert tilings.tiling_of(operation, problem_of(*eights), FLOAT32, False, split) is not None
        for row in dtypes.TABLE:
            if row.name != "float32":
                assert not any(tiled(operation, 8, 1, 64, 64, (1, 56, 56), (1, 3, 3), dtype=row))


def test_threads_choose_nothing():
    """Else the bits of a result would depend on them."""
    x, w = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((2, 64, 30, 29), (70, 64, 3, 3)))
    dy = RANDOM.standard_normal((2, 70, 30, 29)).astype(np.float32)

    def results():
        for name in ("auto", "winograd"):
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
    """The second would be cut into 5000 pieces."""
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
    """conv and wgrad need as many taps in each phase, of which dgrad makes walks of their own."""
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


def drawn(random, kind, shape):
    """Data of a distribution; channels or values of very different size in the last two."""
    if kind == "uniform":
        return random.uniform(-1, 1, shape)
    if kind == "positive":
        return random.uniform(0, 1, shape)
    data = random.standard_normal(shape)
    if kind == "scaled channels":
        return data * 10.0 ** random.uniform(-4, 4, (1, shape[1]) + (1,) * (len(shape) - 2))
    if kind == "scaled values":
        return data * np.exp(2 * random.standard_normal(shape))
    return data


#: (input and output channels, spatial axes, kernel): tilings of two axes, of one and of three.
LAYERS = [
    (16, 64, (30, 30), (3, 3)),
    (128, 128, (25, 25), (3, 3)),
    (128, 64, (27, 27), (5, 5)),
    (512, 64, (20, 20), (3, 3)),
    (2048, 32, (12, 12), (3, 3)),
    (512, 64, (16, 16), (5, 5)),
    (512, 64, (500,), (3,)),
    (256, 64, (8, 12, 12), (3, 3, 3)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
@pytest.mark.parametrize("kind", ["normal", "uniform", "positive", "scaled channels", "scaled values"])
def test_accuracy(layer, kind):
    """The contract, against float64: three quarters of it, so that data drawn otherwise also keeps it."""
    ins, outs, spatial, kernel = layer
    padding = tuple(k // 2 for k in kernel)
    shapes = (2, ins, *spatial), (outs, ins, *kernel), (2, outs, *spatial)
    random = np.random.default_rng(crc32(f"{layer} {kind}".encode()))  # the same data in whatever order tests run
    x, w, dy = (drawn(random, kind, shape).astype(np.float32) for shape in shapes)
    calls = {
        "fprop": lambda x, w, dy, **how: cg.conv(x, w, padding=padding, **how),
        "dgrad": lambda x, w, dy, **how: cg.conv_backward_data(dy, w, shapes[0], padding=padding, **how),
        "wgrad": lambda x, w, dy, **how: cg.conv_backward_filter(x, dy, shapes[1], padding=padding, **how),
    }
    for name, call in calls.items():
        exact = call(*(array.astype(np.float64) for array in (x, w, dy)))
        error = abs(call(x, w, dy, algorithm="winograd") - exact).max() / abs(exact).max()
        assert error <= 1.5e-5, f"{name}: {error:.1e}"
        assert error > 0


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
    """Walks that reach every target once, whole vectors and strips, and nothing else depends on up to two threads."""
    if tilings.refusal(operation, problem, FLOAT32) is not None:
        return
    _, parts, numbers = tile_walks.tile_walks(operation, problem)
    extents = problem.x if operation == DGRAD else problem.y
    defined = problem.backward_walks() if operation == DGRAD else [problem.forward_walk()]
    every = [part for part, number in zip(parts, numbers, strict=True) for _ in range(number)]
    walks = [walk for siblings in every for added in siblings for walk in added]
    assert sum(prod(axis.walk.positions * axis.held for axis in walk) for walk in walks) == sum(
        prod(axis.positions * axis.taps for axis in walk) for walk in defined
    )
    if operation != WGRAD:
        sets = [added[0] for siblings in every for added in siblings]
        assert sum(prod(axis.walk.positions for axis in walk) for walk in sets) == prod(extents)
    for siblings in parts:
        assert len(set(map(len, siblings))) == 1
        for walk in chain(*siblings):
            for axis, first, extent in zip(walk, siblings[0][0], extents, strict=True):
                assert axis.walk.source_tap == axis.walk.source_step
                assert 1 <= axis.held <= axis.walk.taps == first.walk.taps <= tile_walks.MOST_TAPS
                assert axis.walk.positions <= first.walk.positions
                last = axis.walk.target_begin + (axis.walk.positions - 1) * axis.walk.target_step
                assert 0 <= last < extent
    made = winograd.plan(operation, problem, tiling, machine)
    counts = [(len(siblings[0]), len(siblings)) for siblings in every]
    of_rows = Counter(map(tuple, made.steps[:, -2:].tolist()))
    assert of_rows == Counter(chain(*([count] * prod(count) for count in counts)))
    assert len(np.unique(made.steps, axis=0)) == len(made.steps)
    two = winograd.plan(operation, problem, tiling, machine._replace(threads=2))  # for more: test_cuts.py
    assert made.chosen == two.chosen._replace(threads=1) and (made.steps == two.steps).all()
    assert made.chosen.chunk % (machine.vector_bytes // 4) == 0
    outputs = problem.x_channels if operation == DGRAD else problem.y_channels
    lanes, strip = machine.vector_bytes // 4, machine.tile_column_bytes // 4
    assert made.chosen.outputs % min(strip, -(-outputs // lanes) * lanes) == 0
    assert made.chosen.group % made.chosen.outputs == 0
    assert min(made.chosen.images, made.chosen.chunk, made.chosen.outputs, made.chosen.slices) >= 1


def test_algorithm_of_this_package(monkeypatch):
    """What --algorithm says reaches the calls."""
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


def test_errors_are_those_of_each_tile(tmp_path):
    """bench/accuracy.py: a larger tile has larger errors, within the contract here; and the plot of both."""
    sys.path.append(str(Path(__file__).parents[2]))
    from bench import accuracy

    names = ("F(2x2, 3x3)", "F(4x4, 3x3)")
    tiles = {name: accuracy.TILES[name] for name in names}
    rows = list(accuracy.measured((16, 64), ("normal",), tiles))
    assert [row["tile"] for row in rows] == list(names)
    for small, large in zip(*(row["winograd"] for row in rows), strict=True):
        assert 0 < small < large < 2e-5
    assert rows[0]["direct"] == rows[1]["direct"] and max(rows[0]["direct"]) < 2e-5
    pytest.importorskip("matplotlib")
    from bench import plots

    plots.errors({"channels": (16, 64), "rows": rows}, tmp_path / "errors.png")
    assert (tmp_path / "errors.png").stat().st_size > 10_000


def test_contract_refuses_large_tiles_and_many_channels():
    """Tiles of eight points on one axis alone, and as many channels as their error was measured for."""

    def allowed(channels, kernel, stride=1):
        x = tuple(32 if taps > 1 else 1 for taps in kernel)
        strides = tuple(stride if taps > 1 else 1 for taps in kernel)
        y = tuple(-(-n // s) for n, s in zip(x, strides, strict=True))
        problem = ConvProblem(1, 1, channels, 8, x, y, kernel, strides, pad_begin=tuple(taps // 2 for taps in kernel))
        return [tilings.is_accurate(FPROP, problem, tiling) for tiling in tilings.TILINGS]

    assert allowed(64, (1, 1, 3)) == [True] * 5
    assert allowed(64, (1, 3, 3)) == [True, True, True, True, False]
    assert allowed(64, (3, 3, 3)) == [True, True, True, False, False]
    assert allowed(2048, (1, 3, 3)) == [True, True, True, True, False]
    assert allowed(2049, (1, 3, 3)) == [False] * 5
    assert any(allowed(512, (1, 4, 4), stride=2)) and not any(allowed(513, (1, 4, 4), stride=2))  # four sums are added
