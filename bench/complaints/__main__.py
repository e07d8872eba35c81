"""``python -m bench.complaints``: times the convolutions of public complaints with XLA's kernels and with ours."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from bench import machine, processes, results
from bench.__main__ import listed, terminated
from bench.table import Progress
from bench.training import summary

from . import COMPLAINTS, table

#: XLA needs seconds for one call of the slowest complaint.
PATIENCE = 600.0


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.complaints", description=__doc__)
    add = parser.add_argument
    add("--cases", type=listed(list(COMPLAINTS)), default=list(COMPLAINTS), help=f"of {', '.join(COMPLAINTS)} (all)")
    add("--seconds", type=float, default=5.0, help="of timed calls in each row (%(default)s)")
    add("--pairs", type=int, default=3, help="times that each side has its turn at least (%(default)s)")
    add("--threads", type=int, help="of XLA and of ours (the processors of this process)")
    add("--output", type=Path, metavar="FILE", help="write the results to this JSON file")
    options = parser.parse_args(argv)
    if options.threads is None:
        options.threads = machine.about()["processors"]
    if not 1 <= options.threads <= (os.cpu_count() or 1):
        parser.error(f"--threads must be 1 to {os.cpu_count()}")
    if options.pairs < 1:
        parser.error("--pairs must be 1 or more")
    if not processes.has_library(sys.executable, "jax"):
        parser.error(f"{sys.executable} has no jax")
    return options


def run(options):
    """The results of all rows, printed as they come."""
    data = {"kind": "complaints", "framework": "jax", "machine": machine.about(), "threads": options.threads}
    data |= {"libraries": {}, "rows": []}
    if data["machine"]["load_at_start"] > 0.5:
        print(f"the machine is busy (load {data['machine']['load_at_start']:.1f}): these times are not to be trusted")
    progress = Progress(len(options.cases))
    with tempfile.TemporaryDirectory(prefix="convgrad_complaints_") as folder:

        def asked(do, **fields):
            return processes.asked_once(
                "complaints", "bench.complaints.worker", options.threads, folder, do, PATIENCE, **fields
            )

        try:
            data["libraries"] = asked("about")
            print(f"{options.threads} threads\n\n{table.header()}", flush=True)
            for done, name in enumerate(options.cases):
                progress.show(done, name)
                reply = asked("measure", complaint=name, seconds=options.seconds, pairs=options.pairs)
                data["rows"].append({"complaint": name, **reply})
                progress.clear()
                print(table.line(data["rows"][-1]), flush=True)
        except KeyboardInterrupt:
            progress.clear()
            data["stopped"] = "interrupted"
            print(data["stopped"])
    if options.output:
        results.write(data, options.output)
    return data


def main(argv=None):
    data = run(arguments(argv))
    return 1 if "stopped" in data or any(map(summary.trouble, data["rows"])) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
