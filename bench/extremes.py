"""``python -m bench.extremes``: times layers unlike those of networks, and names outliers.

Random geometries have up to 500 taps and 64 positions of y on an axis, each power of two alike, with strides, dilation,
padding and groups. On a curve, the filter or y grows. A point stands out if its time for each FLOP rises.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, pairwise
from math import exp, log, prod
from pathlib import Path

from . import results, suites, summary
from .__main__ import chosen_peers, listed, run, terminated
from .case import DTYPES, KERNELS, LAYOUTS
from .peers import NAMES as PEERS
from .peers import OURS

SETS = ("random", "taps", "positions")
TAPS, POSITIONS, CHANNELS, IMAGES = 500, 64, 512, 8  # at most
MOST_FLOP, MOST_ELEMENTS = 1e9, 1 << 23
SLOWER, STEP = 0.95, 1.5  # a ratio below the first, or a point of a curve above the second, stands out
#: Kinds of curves: (images, groups, channels of x and of y in a group), and the growth from one point to the next.
KINDS = ((1, 1, 64, 64), (1, 64, 1, 1), (4, 1, 16, 16), (1, 1, 4, 4), (1, 1, 128, 16))
GROWTH = 1.3


def line_of(name, images, groups, channels, outputs, axes, transposed=False):
    """A layer as a line of suites.txt; the channels are counted in a group."""
    names = ["iokspd"[i] + name for name in "dhw"[-len(axes) :] for i in range(6)]
    sizes = "".join(f"{name}{size}" for name, size in zip(names, chain(*axes), strict=True))
    problem = f'mb{images}g{groups}ic{groups * channels}oc{groups * outputs}{sizes}n"{name}"'
    return f"{'transposed ' if transposed else ''}{problem}"


def axis_of(y, kernel, stride=1, dilation=1, pad=0):
    """(x, y, kernel, stride, pad, dilation less one) of an axis; x may be less than one; then no such layer exists."""
    return (y - 1) * stride + (kernel - 1) * dilation + 1 - 2 * pad, y, kernel, stride, pad, dilation - 1


def is_affordable(images, groups, channels, outputs, axes):
    """Whether x is not empty, and the tensors and products of a layer stay within the bounds."""
    x, y, taps = (prod(sizes) for sizes in list(zip(*axes, strict=True))[:3])
    tensors = images * groups * channels * x, groups * channels * outputs * taps, images * groups * outputs * y
    fits = min(axes)[0] >= 1 and max(tensors) <= MOST_ELEMENTS
    return fits and 2 * images * groups * channels * outputs * taps * y <= MOST_FLOP


def drawn(rng, name):
    """The line of a random geometry."""

    def number(most):
        return int(exp(rng.uniform(0, log(most + 1))))

    while True:
        axes = []
        for _ in range(rng.choice((1, 1, 2, 2, 2, 3))):
            kernel, dilation = number(TAPS), number(16) if rng.random() < 0.25 else 1
            stride = number(kernel) if rng.random() < 0.4 else 1
            pad = rng.choice((0, 0, (kernel - 1) * dilation // 2, kernel // 4))
            axes.append(axis_of(number(POSITIONS), kernel, stride, dilation, pad))
        groups = number(CHANNELS) if rng.random() < 0.3 else 1
        most = 4 if groups > 16 else CHANNELS
        sizes = number(IMAGES), groups, number(most), number(most)
        if is_affordable(*sizes, axes):
            return line_of(name, *sizes, axes, rng.random() < 0.5)


def curve(which, kind, fixed):
    """The lines of a curve in two dimensions. ``which`` is taps or positions and grows; the other one is ``fixed``."""
    most, lines, size = (TAPS if which == "taps" else POSITIONS), [], 3 if which == "taps" else 1
    while size <= most:
        axes = [axis_of(fixed, size) if which == "taps" else axis_of(size, fixed)] * 2
        if is_affordable(*kind, axes):
            lines.append(line_of(f"{which}_{'_'.join(map(str, kind))}_at_{fixed}_of_{size}", *kind, axes))
        size = max(size + 1, int(size * GROWTH))
    return lines


def text_of(options):
    """The layers that the options ask for, as lines after the names of their suites."""
    rng, lines = random.Random(options.seed), []
    if "random" in options.sets:
        lines += ["[random]", *(drawn(rng, f"random_{options.seed}_{i}") for i in range(options.count))]
    for which, fixed in (("taps", (1, 2, 5, 16)), ("positions", (3, 8, 20, 50))):
        if which in options.sets:
            lines += [f"[{which}]", *(line for kind in KINDS for size in fixed for line in curve(which, kind, size))]
    return "\n".join(lines)


def steps(rows):
    """(growth of the time for each FLOP since the point before, row) of all curves, the greatest first."""
    curves, found = {}, []
    for row in rows:
        if row["suite"] != "random" and summary.seconds(row, OURS):
            name, _, _ = row["layer"].rpartition("_of_")
            curves.setdefault((name, row["kernel"], row["layout"], row["dtype"]), []).append(row)
    for points in curves.values():
        costs = [(summary.seconds(row, OURS) / row["flop"], row) for row in points]
        found += [(after / before, row) for (before, _), (after, row) in pairwise(costs)]
    return sorted(found, key=lambda pair: -pair[0])


def conclusion(data):
    """The lines that name the rows that stand out."""
    ratios, risen = summary.ratios(data["rows"]), steps(data["rows"])
    named = [(value, "", row) for value, row in ratios if value < SLOWER]
    named += [(value, "step ", row) for value, row in risen if value > STEP]
    lines = [f"{'ratio':>7}{'ms':>10}  layer"]
    for value, kind, row in named:
        where = " ".join(row[field] for field in ("layer", "kernel", "layout", "dtype"))
        lines.append(f"{value:7.2f}{1e3 * summary.seconds(row, OURS):10.3f}  {kind}{where}")
    third, below = (sum(value < most for value, _ in ratios) for most in (1 / 3, SLOWER))
    lines.append(f"{len(ratios)} ratios, {third} below 1/3, {below} below {SLOWER}")
    return [*lines, f"{len(risen)} pairs of neighbours, {sum(value > STEP for value, _ in risen)} above {STEP}"]


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.extremes", description=__doc__)
    add = parser.add_argument
    add("--sets", type=listed(SETS), default=SETS, help=f"of {', '.join(SETS)} (all)")
    add("--count", type=int, default=1000, help="of random geometries (%(default)s)")
    add("--seed", type=int, default=0, help="of the random geometries (%(default)s)")
    add("--op", type=listed(KERNELS), default=KERNELS, help="of fprop, dgrad, wgrad (all)")
    add("--layout", type=listed(LAYOUTS), default=LAYOUTS, help="of NCX, NXC (both)")
    add("--dtype", type=listed(DTYPES), default=["float32"], help=f"of {', '.join(DTYPES)} (float32)")
    add("--peers", type=listed(PEERS), help=f"of {', '.join(PEERS)}, or an empty text for none (those installed)")
    add("--threads", type=int, default=1, help="of every library (%(default)s)")
    add(
        "--processes", type=int, default=1, help="that measure rows at a time, on processors of their own (%(default)s)"
    )
    add("--seconds", type=float, default=0.05, help="spent on each row and library (%(default)s)")
    add("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(argv)
    if not 1 <= options.processes * options.threads <= len(processors()):
        parser.error(f"--processes times --threads must be 1 to {len(processors())}, the processors that there are")
    options.algorithm, options.passes, options.python = "auto", 1, {}
    return parser, options


def processors():
    """Processors of this process."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


def rows_of(options):
    return suites.rows(SETS, options.op, options.layout, options.dtype, layers=suites.parse(text_of(options)))


def part(peers, options, mine, number):
    """The result of every ``processes``-th row. This process measures it on its own processors and prints nothing."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, mine[number * options.threads :][: options.threads])
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        return run(rows_of(options)[number :: options.processes], peers, options)


def measured(peers, options):
    """The result of all rows.

    With several processes, it is the result of the first one with the rows of all in order.
    """
    if options.processes == 1:
        return run(rows_of(options), peers, options)
    each = partial(part, peers, options, processors())
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(each, range(options.processes)))
    rows = rows_of(options)
    data = {**parts[0], "layers": suites.lines(dict.fromkeys(row.layer for row in rows)), "rows": []}
    for i in range(len(rows)):
        own = parts[i % options.processes]
        if i // options.processes < len(own["rows"]):
            data["rows"].append(own["rows"][i // options.processes])
        elif "stopped" in own:
            data["stopped"] = own["stopped"]
    return data


def main(argv=None):
    parser, options = arguments(argv)
    data = measured(chosen_peers(parser, options), options)
    print("\n" + "\n".join(conclusion(data)))
    if options.json:
        results.write(data, options.json)
    return "stopped" in data


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
