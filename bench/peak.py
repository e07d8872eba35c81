"""How much of the machine's limit each kernel reaches: python bench/peak.py [--seconds S] [--json FILE].

The limit is the rate of the bare register tile on panels in the cache, timed in the same run and on the same threads,
in turn with the kernels. A result is verified against float64 before it is timed; a rate is the best of all
repetitions, and counts useful operations only (products with padding are none).
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

import convgrad_cy as cg
from convgrad_cy import cpu, dtypes
from convgrad_cy.problem import conv_size

#: (batch, channels of x, extent, channels of y, kernel, stride, padding): 3x3 layers of ResNet-50, one strided.
LAYERS = (
    (8, 64, 56, 64, 3, 1, 1),
    (8, 128, 28, 128, 3, 1, 1),
    (8, 256, 14, 256, 3, 1, 1),
    (8, 128, 56, 128, 3, 2, 1),
)
TILE_DEPTH = 128
FLOAT32 = dtypes.lookup(np.dtype(np.float32))


def operations(layer, layout, rng):
    """name -> (call, result of the call in float64) of the three kernels, and the useful FLOP of each."""
    batch, ins, extent, outs, kernel, stride, padding = layer
    size = conv_size(extent, kernel, stride, 1, (padding, padding))
    reached = sum(0 <= p * stride + t - padding < extent for p in range(size) for t in range(kernel))
    flop = 2 * batch * ins * outs * reached**2
    options = {"stride": stride, "padding": padding}
    if layout == "NXC":
        options |= {"data_format": "NXC", "filter_format": "XIO"}
        shapes = (batch, extent, extent, ins), (kernel, kernel, ins, outs), (batch, size, size, outs)
    else:
        shapes = (batch, ins, extent, extent), (outs, ins, kernel, kernel), (batch, outs, size, size)
    x, w, dy = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)

    def fprop(x, w, dy, **out):
        return cg.conv(x, w, **options, **out)

    def dgrad(x, w, dy, **out):
        return cg.conv_backward_data(dy, w, x.shape, **options, **out)

    def wgrad(x, w, dy, **out):
        return cg.conv_backward_filter(x, dy, w.shape, **options, **out)

    wide = [array.astype(np.float64) for array in (x, w, dy)]
    calls = {}
    for function, result in ((fprop, dy), (dgrad, x), (wgrad, w)):
        out = np.empty_like(result)
        calls[function.__name__] = (
            lambda function=function, out=out: function(x, w, dy, out=out),
            function(*wide),
        )
    return calls, flop


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure(layer, layout, seconds):
    """Rates in GFLOP/s of the three kernels and of the tile, all timed in turn."""
    calls, flop = operations(layer, layout, np.random.default_rng(0))
    for name, (call, expected) in calls.items():
        error = np.abs(call() - expected).max() / np.abs(expected).max()
        if not error < 1e-5:
            raise SystemExit(f"{name} of {layer} in {layout} is wrong by {error:.1e}")
    best = dict.fromkeys([*calls, "tile"], 0.0)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, (call, _) in calls.items():
            best[name] = max(best[name], flop / timed(call)[0])
        duration, tile_flop = timed(lambda: cpu.run_tiles(FLOAT32, TILE_DEPTH, 2000))
        best["tile"] = max(best["tile"], tile_flop / duration)
    return {name: rate * 1e-9 for name, rate in best.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="spent on each layer and layout (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the rates to this file too")
    options = parser.parse_args()
    print(f"float32, {cpu.isa}, {cpu.threads()} threads; GFLOP/s (% of the tile's rate in the same run)")
    print(f"{'n, c, h=w, o, k, s, p':<26}{'layout':<8}{'tile':>7}{'fprop':>14}{'dgrad':>14}{'wgrad':>14}")
    rows = []
    for layer in LAYERS:
        for layout in ("NCX", "NXC"):
            rates = measure(layer, layout, options.seconds)
            tile = rates.pop("tile")
            cells = "".join(f"{rate:8.1f} ({100 * rate / tile:3.0f})" for rate in rates.values())
            print(f"{', '.join(map(str, layer)):<26}{layout:<8}{tile:7.1f}{cells}", flush=True)
            rows.append({"layer": layer, "layout": layout, "tile": tile, **rates})
    if options.json:
        about = {"isa": cpu.isa, "threads": cpu.threads(), "dtype": "float32", "machine": platform.machine()}
        options.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
