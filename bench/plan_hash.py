"""``python -m bench.plan_hash``: hashes of the plans of many rows. A change that moves a plan changes a hash.

The hash covers kernels, steps, blocks, and the copies around them (``moves.signature``). Two commits that print the
same hashes plan the same work.
"""

import argparse
from hashlib import sha256

from . import moved_rows, moves, routes, suites
from .__main__ import listed
from .case import DTYPES
from .table import Progress


def hashes(rows, machine, progress):
    """kernel -> hash of the plans of all its rows."""
    found = {}
    for done, row in enumerate(rows):
        progress.show(done, machine)
        task = routes.task_of(row)._replace(machine=moved_rows.MACHINES[machine])
        found.setdefault(row.kernel, sha256()).update(repr(moves.planned(task)).encode())
    return {kernel: digest.hexdigest()[:16] for kernel, digest in found.items()}


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.plan_hash", description=__doc__)
    add = parser.add_argument
    add("--count", type=int, default=1000, help="number of random geometries, in addition to the suites (%(default)s)")
    add("--seed", type=int, default=1, help="seed of the random geometries (%(default)s)")
    add(
        "--machine",
        type=listed(moved_rows.MACHINES),
        default=[*moved_rows.MACHINES],
        help="machines of moved_rows.py (all)",
    )
    add("--dtype", type=listed(DTYPES), default=["float32", "bfloat16"], help=f"of {', '.join(DTYPES)}")
    return parser.parse_args(argv)


def main(argv=None):
    options = arguments(argv)
    layers = [*suites.LAYERS, *moved_rows.odd_layers_of(options.count, options.seed)]
    names = tuple(dict.fromkeys(layer.suite for layer in layers))
    for machine in options.machine:
        for dtype in options.dtype:
            rows = suites.rows(names, dtypes=[dtype], layers=layers)
            progress = Progress(len(rows))
            found = hashes(rows, machine, progress)
            progress.clear()
            print(f"{machine:<8}{dtype:<10}{len(rows):7} rows  {'  '.join(found.values())}", flush=True)


if __name__ == "__main__":
    main()
