"""The accuracy contract on larger layers and several kinds of data, for all types, and its refusals."""

import sys
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from operations import DTYPES, dtype_of

import convgrad_cy as cg
from convgrad_cy.cpu.winograd import tilings
from convgrad_cy.problem import FPROP, ConvProblem


def drawn(random, kind, shape):
    """Data of a distribution. In the last two, channels or values differ much in size."""
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


#: (input and output channels, spatial axes, kernel) for tilings of two axes, of one and of three.
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


#: Digits of the types that Winograd's algorithm computes.
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24}


def half_units(values, dtype):
    """Half a unit in the last place of numbers in a type."""
    exponents = np.frexp(values)[1] - DIGITS[dtype]
    return 0.5 * 2.0 ** (np.maximum(exponents, -24) if dtype == "float16" else exponents)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
@pytest.mark.parametrize("kind", ["normal", "uniform", "positive", "scaled channels", "scaled values"])
@pytest.mark.parametrize("dtype", [name for name in DTYPES if name in DIGITS])
def test_accuracy(layer, kind, dtype):
    """Errors against float64 must be within three quarters of the contract, so that other data keep it, too."""
    ins, outs, spatial, kernel = layer
    padding = tuple(k // 2 for k in kernel)
    shapes = (2, ins, *spatial), (outs, ins, *kernel), (2, outs, *spatial)
    random = np.random.default_rng(crc32(f"{layer} {kind}".encode()))  # equal data in any order of the tests
    x, w, dy = (drawn(random, kind, shape) for shape in shapes)
    if dtype == "float16":  # its results reach 65504
        x, w, dy = (array * (2 / abs(array).max()) for array in (x, w, dy))
    x, w, dy = (array.astype(dtype_of(dtype)) for array in (x, w, dy))
    calls = {
        "fprop": lambda x, w, dy, **how: cg.conv(x, w, padding=padding, **how),
        "dgrad": lambda x, w, dy, **how: cg.conv_backward_data(dy, w, shapes[0], padding=padding, **how),
        "wgrad": lambda x, w, dy, **how: cg.conv_backward_filter(x, dy, shapes[1], padding=padding, **how),
    }
    for name, call in calls.items():
        exact = call(*(array.astype(np.float64) for array in (x, w, dy)))
        result = call(x, w, dy, algorithm="winograd").astype(np.float64)
        assert np.isfinite(result).all()
        error = abs(result - exact)
        assert error.max() > 0
        if dtype != "float32":
            error -= half_units(np.maximum(abs(exact), abs(result)), dtype)
        assert error.max() <= 1.5e-5 * abs(exact).max(), f"{name}: {error.max() / abs(exact).max():.1e}"


def test_errors_are_those_of_each_tile(tmp_path):
    """The errors of bench/accuracy.py must grow with the tile and stay within the contract. It must plot both."""
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
    """Tiles of eight points must be allowed on one axis only, and channels only up to the measured number."""

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
