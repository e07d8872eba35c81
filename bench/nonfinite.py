"""``python -m bench.nonfinite``: how many times as long calls take if their arrays have NaN or infinity.

A training run that has diverged has NaN everywhere, and must not look as if it hung. Ordinary and spoiled arrays take
turns, and the least time of each counts. Both operands of a call are spoiled alike.
"""

import argparse
import os
import sys
import time

import numpy as np

import convgrad_cy as cg

from . import suites
from .__main__ import listed, regex
from .case import KERNELS, LAYOUTS
from .peers.convgrad_cy import ALGORITHM, Library

LAYERS = "^(resnet50_2_3x3|resnet50_5_3x3|resnet50_5_3x3_stride2|resnet50_conv1|dcgan_g_16|unet_bottom_1)$"


#: name -> a function that spoils an array
KINDS = {
    "NaN everywhere": lambda array: array.fill(np.nan),
    "one NaN": lambda array: array.reshape(-1).__setitem__(array.size // 2, np.nan),
    "NaN in the last entry of the first axis": lambda array: array[-1:].fill(np.nan),
    "infinity everywhere": lambda array: np.copysign(np.inf, array, out=array),
    "one infinity": lambda array: array.reshape(-1).__setitem__(array.size // 2, np.inf),
}


def least_times(calls, turns):
    """The least time of each call, in turn."""
    best = [np.inf] * len(calls)
    for _ in range(turns):
        for i, call in enumerate(calls):
            begun = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - begun)
    return best


def ratios(row, library, turns):
    """kind -> time of the row's call over its time with ordinary arrays."""
    random = np.random.default_rng(0)
    case = row.case
    plain = [random.standard_normal(shape, np.float32) for shape in (case.x, case.w, case.y)]
    spoiled = []
    for spoil in KINDS.values():
        arrays = [array.copy() for array in plain]
        for array in arrays:
            spoil(array)
        spoiled.append(arrays)
    with np.errstate(all="ignore"):
        calls = [library.operation(case, row.kernel, *arrays) for arrays in (plain, *spoiled)]
        base, *others = least_times(calls, turns)
    return {kind: other / base for kind, other in zip(KINDS, others, strict=True)}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.nonfinite", description=__doc__.splitlines()[0])
    parser.add_argument("--match", type=regex, default=LAYERS, metavar="REGEX", help="layers whose name has this")
    parser.add_argument("--op", type=listed(KERNELS), default=KERNELS, help="kernels (all)")
    parser.add_argument("--layout", type=listed(LAYOUTS), default=LAYOUTS, help="layouts (both)")
    parser.add_argument("--turns", type=int, default=5, help="of each call (%(default)s)")
    parser.add_argument("--algorithm", default="auto", choices=("auto", "direct"), help="(%(default)s)")
    options = parser.parse_args(argv)
    rows = suites.rows(operations=options.op, layouts=options.layout, match=options.match)
    if not rows or options.turns < 1:
        parser.error("no layer is left" if not rows else "--turns must be 1 or more")
    os.environ[ALGORITHM] = options.algorithm
    library = Library(cg.get_num_threads())
    print(*KINDS, sep=" | ")
    greatest = 0
    for row in rows:
        found = ratios(row, library, options.turns)
        greatest = max(greatest, *found.values())
        numbers = (f"{ratio:6.2f}" for ratio in found.values())
        print(f"{row.case.name:<34}{row.kernel:<6}{row.case.layout:<4}", *numbers, flush=True)
    print(f"the greatest: {greatest:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
