"""``python -m bench.chosen``: whether ``enable(benchmark=True)`` is ever slower than PyTorch alone.

Each row is a kernel of a layer. PyTorch computes it in one process, and in another one the kernel that
``convgrad_cy.torch`` has chosen there. A row that seems slower is measured again for longer, several times if needed,
because other programs disturb single measurements. The choices stay as they are. Rows that stay slower are listed.
"""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from . import extremes, results, summary
from .__main__ import run, terminated
from .measure import best_of

PLAIN, CHOSEN = "torch", "torch_chosen"
#: An environment variable: the path of the file in which peers/torch_chosen.py keeps its choices.
FILE = "CONVGRAD_CY_BENCH_CHOICES"
#: A row above this ratio of both times is slower.
MOST = 1.03
#: Times that slow rows are measured again, and the growth of the time that each one gets.
AGAIN, GROWTH = 3, 4


def ratio(row):
    """The time with chosen kernels over PyTorch's own; None if one of them has none."""
    plain, chosen = summary.seconds(row, PLAIN), summary.seconds(row, CHOSEN)
    return chosen / plain if plain and chosen else None


def is_slow(row):
    return (ratio(row) or 0) > MOST


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.chosen", description=__doc__.splitlines()[0])
    extremes.add_rows(parser, ["suites", "random"], 200)
    add = parser.add_argument
    add("--threads", type=int, default=1, help="of both (%(default)s)")
    add("--every", type=int, default=1, help="measure only each row of this distance (%(default)s)")
    add("--seconds", type=float, default=0.05, help="spent on each row and process (%(default)s)")
    add("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(argv)
    options.algorithm, options.passes = "auto", 1
    return options


def measured(options):
    """The result of all rows. Slow ones are measured again, and the best of all times counts."""
    peers = {PLAIN: sys.executable, CHOSEN: sys.executable}
    rows = extremes.rows_of(options)[:: options.every]
    data = run(rows, peers, options)
    for _ in range(AGAIN):
        slow = [i for i, row in enumerate(data["rows"]) if is_slow(row)]
        if "stopped" in data or not slow:
            break
        options.seconds *= GROWTH
        again = run([rows[i] for i in slow], peers, options)
        for i, row in zip(slow, again["rows"], strict=False):
            data["rows"][i] = best_of(data["rows"][i], row)
        data |= {"stopped": again["stopped"]} if "stopped" in again else {}
    return data


def conclusion(rows):
    """The lines that name the slow rows, and the means."""
    found = sorted(((ratio(row), row) for row in rows if ratio(row)), key=lambda pair: -pair[0])
    lines = [f"{'chosen/PyTorch':>14}{'PyTorch, us':>14}  layer"]
    for value, row in found:
        if value > MOST:
            where = " ".join(row[field] for field in ("layer", "kernel", "layout", "dtype"))
            lines.append(f"{value:14.3f}{1e6 * summary.seconds(row, PLAIN):14.1f}  {where}")
    mean = summary.geometric_mean(1 / value for value, _ in found)
    slow = sum(value > MOST for value, _ in found)
    return [*lines, f"{len(found)} rows, {slow} above {MOST}; geometric mean {mean or 1:.2f}x faster than PyTorch"]


def main(argv=None):
    options = arguments(argv)
    with tempfile.TemporaryDirectory(prefix="convgrad_chosen_") as folder:
        os.environ[FILE] = os.path.join(folder, "choices.json")
        data = measured(options)
    print("\n" + "\n".join(conclusion(data["rows"])))
    if options.json:
        results.write(data, options.json)
    return "stopped" in data or any(map(is_slow, data["rows"]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
