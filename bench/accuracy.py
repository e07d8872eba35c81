"""``python -m bench.accuracy [--json FILE]``: the errors of Winograd's algorithm and of the direct one.

An error is the greatest difference from the result in float64, relative to the greatest element of that result. The
greatest of fprop, dgrad and wgrad counts, for each tile, kind of data and number of channels.
"""

import argparse
from pathlib import Path

import numpy as np

import convgrad_cy as cg
from convgrad_cy import cpu
from convgrad_cy.cpu.winograd import tilings

from . import machine, results
from .fit_algorithm import forget
from .peers import OURS

CHANNELS = (16, 64, 256, 1024, 2048)
KINDS = ("normal", "uniform", "positive", "scaled channels", "scaled values")
#: name -> (index of the tiling, extents of x, kernel). The package does not use the last one: its errors are too great.
TILES = {
    "F(2x2, 3x3)": (0, (18, 18), (3, 3)),
    "F(4x4, 3x3)": (1, (18, 18), (3, 3)),
    "F(2x2, 5x5)": (1, (18, 18), (5, 5)),
    "F(4x4, 2x2)": (1, (18, 18), (2, 2)),
    "F(5x5, 3x3)": (3, (18, 18), (3, 3)),
    "F(3x3, 5x5)": (3, (18, 18), (5, 5)),
    "F(6, 3)": (4, (300,), (3,)),
    "F(4, 4), 11 taps": (3, (300,), (11,)),
    "F(2x4x4, 3x3x3)": (1, (6, 10, 10), (3, 3, 3)),
    "F(4x4x4, 3x3x3)": (2, (6, 10, 10), (3, 3, 3)),
    "F(4x6, 3x3), not used": (4, (18, 18), (3, 3)),
}
OUTPUTS = 32


def drawn(kind, shape, random):
    """Random data of a kind. In the last two kinds channels, or values, differ much in size."""
    if kind == "uniform":
        return random.uniform(-1, 1, shape)
    if kind == "positive":
        return random.uniform(0, 1, shape)
    data = random.standard_normal(shape)
    if kind == "scaled channels":
        return data * 10.0 ** random.uniform(-4, 4, (1, shape[1]) + (1,) * (len(shape) - 2))
    return data * np.exp(2 * random.standard_normal(shape)) if kind == "scaled values" else data


def errors(channels, spatial, kernel, kind, random):
    """The greatest error of the three kernels: (by Winograd's algorithm, by the direct one)."""
    padding = tuple(k // 2 for k in kernel)
    y = tuple(size + 2 * p - k + 1 for size, p, k in zip(spatial, padding, kernel, strict=True))
    shapes = (2, channels, *spatial), (OUTPUTS, channels, *kernel), (2, OUTPUTS, *y)
    x, w, dy = (drawn(kind, shape, random).astype(np.float32) for shape in shapes)
    calls = (
        lambda x, w, dy, how: cg.conv(x, w, padding=padding, algorithm=how),
        # The data gradient sums over the outputs. With x and y exchanged, it has as many terms as the others.
        lambda x, w, dy, how: cg.conv_backward_data(
            x, np.ascontiguousarray(w.swapaxes(0, 1)), (2, OUTPUTS, *grown(spatial, padding, kernel)),
            padding=padding, algorithm=how,
        ),
        lambda x, w, dy, how: cg.conv_backward_filter(x, dy, shapes[1], padding=padding, algorithm=how),
    )  # fmt: skip
    worst = {"winograd": 0.0, "direct": 0.0}
    for call in calls:
        exact = call(*(array.astype(np.float64) for array in (x, w, dy)), "direct")
        for how in worst:
            error = np.abs(call(x, w, dy, how) - exact).max() / np.abs(exact).max()
            worst[how] = max(worst[how], float(error))
    return worst["winograd"], worst["direct"]


def grown(spatial, padding, kernel):
    """The extents of the input whose convolution has the extents ``spatial``."""
    return tuple(size - 2 * p + k - 1 for size, p, k in zip(spatial, padding, kernel, strict=True))


def measured(channels=CHANNELS, kinds=KINDS, tiles=TILES):
    """The rows of the result: the errors of one tile and one kind of data, for each number of channels."""
    kept, contract = tilings.TILINGS, tilings.is_accurate
    try:
        tilings.is_accurate = lambda *call: True
        for name, (tiling, spatial, kernel) in tiles.items():
            tilings.TILINGS = (kept[tiling],)
            forget()
            for kind in kinds:
                random = np.random.default_rng(0)
                winograd, direct = zip(
                    *(errors(number, spatial, kernel, kind, random) for number in channels), strict=True
                )
                yield {"tile": name, "data": kind, "winograd": winograd, "direct": direct}
    finally:
        tilings.TILINGS, tilings.is_accurate = kept, contract
        forget()


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of the errors to this file")
    options = parser.parse_args(argv)
    data = {"kind": "errors", "machine": machine.about(), "channels": CHANNELS, "rows": []}
    data["libraries"] = {OURS: {"version": f"{cg.__version__}, {cpu.isa}"}}
    print(f"{'tile':<24}{'data':<17}", *(f"{channels:>7} channels " for channels in CHANNELS))
    for row in measured():
        data["rows"].append(row)
        pairs = zip(row["winograd"], row["direct"], strict=True)
        print(f"{row['tile']:<24}{row['data']:<17}", *(f"{a:.1e} ({b:.1e})" for a, b in pairs), flush=True)
    if options.json:
        results.write(data, options.json)
    if options.plot:
        from . import plots

        plots.errors(data, options.plot)


if __name__ == "__main__":
    main()
