"""``python -m bench.extremes``: times random layers and curves that no network has, and lists the outliers.

``odd_layers.py`` draws the layers. A row stands out if another library is faster, a point of a curve if the time for
each FLOP rises. With ``--without``, no other library is measured: a row stands out if another family or form of this
package's kernels is faster (``without.py``).
"""

import argparse
import contextlib
import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

from . import odd_layers, results, routes, suites, summary, without
from .__main__ import chosen_peers, listed, regex, run, terminated
from .case import DTYPES, KERNELS, LAYOUTS
from .peers import NAMES as PEERS
from .peers import OURS

#: "suites" stands for all suites of suites.txt.
SETS = (*odd_layers.SETS, "suites", *suites.NAMES)
SLOWER, STEP = 0.95, 1.5  # a ratio below the first, or a point of a curve above the second, stands out


def steps(rows):
    """(growth of the time for each FLOP since the point before, row) of all curves, the greatest first."""
    curves, found = {}, []
    for row in rows:
        if row["suite"] in odd_layers.CURVES and summary.seconds(row, OURS):
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


def left_out(text):
    """The names of ``--without``: "all" stands for every one."""
    return list(routes.NAMES) if text == "all" else listed(routes.NAMES)(text)


def add_rows(parser, sets, count):
    """Add the arguments that choose rows. ``sets`` and ``count`` are the defaults of ``--sets`` and ``--count``."""
    add = parser.add_argument
    add("--sets", type=listed(SETS), default=sets, help=f"of {', '.join(SETS)} ({','.join(sets)})")
    add("--count", type=int, default=count, help="number of random geometries (%(default)s)")
    add("--seed", type=int, default=0, help="seed of the random geometries (%(default)s)")
    add("--match", type=regex, default="", metavar="REGEX", help="layers whose name contains a match")
    add("--op", type=listed(KERNELS), default=KERNELS, help="of fprop, dgrad, wgrad (all)")
    add("--layout", type=listed(LAYOUTS), default=LAYOUTS, help="of NCX, NXC (both)")
    add("--dtype", type=listed(DTYPES), default=["float32"], help=f"of {', '.join(DTYPES)} (float32)")


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.extremes", description=__doc__)
    add_rows(parser, odd_layers.SETS, 1000)
    add = parser.add_argument
    add(
        "--without",
        type=left_out,
        help=f"families and forms of plans, of {', '.join(routes.NAMES)}, or all: where a row takes one, it is timed "
        "without it, too",
    )
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
    if options.without and options.peers:
        parser.error("--peers must be left out with --without, which measures this package alone")
    options.algorithm, options.passes, options.python = "auto", 1, {}
    return parser, options


def processors():
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


def layers_of(options):
    """The layers that are asked for; layers of suites.txt come first."""
    whole = "suites" in options.sets
    regular = [layer for layer in suites.LAYERS if whole or layer.suite in options.sets]
    return regular + suites.parse("\n".join(odd_layers.lines(options.sets, options.count, options.seed)))


def rows_of(options):
    layers = layers_of(options)
    return suites.rows(SETS, options.op, options.layout, options.dtype, options.match, layers)


def part(peers, options, mine, number):
    """The result of every ``processes``-th row. This process measures it on its own processors and prints nothing."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, mine[number * options.threads :][: options.threads])
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        return run(rows_of(options)[number :: options.processes], peers, options)


def measured(peers, options):
    """The result of all rows. With several processes, the first one's result, with the rows of the others inserted."""
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
    if options.without:
        layers = list(dict.fromkeys(row.layer for row in rows_of(options)))
        data = without.run(layers, processors(), options)
        lines = without.conclusion(data["rows"])
    else:
        data = measured(chosen_peers(parser, options), options)
        lines = conclusion(data)
    print("\n" + "\n".join(lines))
    if options.json:
        results.write(data, options.json)
    return "stopped" in data or bool(options.without and without.troubles(data["rows"]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
