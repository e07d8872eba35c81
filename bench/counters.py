"""``python -m bench.counters ROOT ROOT...``: compares builds of this package by the counters of the processor.

On a machine with other users, a call takes between one and three times its best time. Cycles of one thread vary much
less, and cache lines that come from beyond its second cache hardly vary. This needs Linux with ``perf_event_paranoid``
at most 2; lines are counted on AMD Zen 3 and later only. Each ROOT is a checkout with its kernels built in place. The
benchmark itself is the one of this checkout.
"""

import argparse
import ctypes
import json
import os
import re
import struct
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from . import machine, suites
from .__main__ import listed, regex
from .case import KERNELS, LAYOUTS
from .summary import geometric_mean

#: Fields of struct perf_event_attr: its size, and the bits that exclude the kernel and the hypervisor.
ATTRIBUTES_BYTES, USER_ONLY = 128, 1 << 5 | 1 << 6
READ_TIMES = 1 | 2  # besides the count: the time it was wanted, and the time it had a counter
HARDWARE, RAW = 0, 4
SYSCALL = {"x86_64": 298, "aarch64": 241}
EVENTS = {"cycles": (HARDWARE, 0), "instructions": (HARDWARE, 1)}
#: Lines that came from the last cache or from memory, on demand or for a prefetcher.
LINES = {"demanded": (RAW, 0x5E44), "prefetched_cache": (RAW, 0xFF71), "prefetched_memory": (RAW, 0xFF72)}
CALLS = 3


class Counters:
    """Counters of this thread."""

    def __init__(self, events):
        libc = ctypes.CDLL(None, use_errno=True)
        self.files = {}
        for name, (kind, event) in events.items():
            fields = struct.pack("=IIQQQQQ", kind, ATTRIBUTES_BYTES, event, 0, 0, READ_TIMES, USER_ONLY)
            attributes = ctypes.create_string_buffer(fields, ATTRIBUTES_BYTES)
            file = libc.syscall(SYSCALL[os.uname().machine], attributes, 0, -1, -1, 0)
            if file < 0:
                raise OSError(ctypes.get_errno(), f"no counter for {name}: {os.strerror(ctypes.get_errno())}")
            self.files[name] = file

    def _read(self):
        return {name: struct.unpack("QQQ", os.read(file, 24)) for name, file in self.files.items()}

    def of(self, call):
        """The counts of a call, name -> number. If counters take turns, the counts are scaled to the whole call."""
        before = self._read()
        call()
        after = self._read()
        differences = {name: np.subtract(after[name], before[name], dtype=float) for name in before}
        return {name: count * wanted / max(counted, 1) for name, (count, wanted, counted) in differences.items()}


def events():
    """The events that this processor can count."""
    family, _ = machine.about()["family"]
    return EVENTS | (LINES if family in ("25", "26") else {})


def worker(root):
    """Count for one build. Rows come as lines of JSON, and counts go as lines of JSON."""
    sys.path.insert(0, root)
    from .peers.convgrad_cy import Library, cpu

    if not Path(cpu.__file__).is_relative_to(root):
        sys.exit(f"the package came from {cpu.__file__}, not from {root}")
    counters, library = Counters(events()), Library(1)
    for line in sys.stdin:
        name, kernel, layout = json.loads(line)
        (row,) = suites.rows(operations=[kernel], layouts=[layout], match=f"^{re.escape(name)}$")
        rng = np.random.default_rng(0)
        arrays = [rng.random(shape, np.float32) - np.float32(0.5) for shape in (row.case.x, row.case.w, row.case.y)]
        call = library.operation(row.case, kernel, *arrays)
        call()
        counts = [counters.of(call) for _ in range(CALLS)]
        least = {name: min(count[name] for count in counts) for name in counts[0]}
        lines = sum(least.pop(name, 0) for name in LINES)
        print(json.dumps(least | {"lines": lines}), flush=True)


def compare(roots, rows, turns):
    """For each row the least counts of each build, in turn."""
    here = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "bench.counters", "--worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": here}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with ExitStack() as stack:
        workers = [
            stack.enter_context(subprocess.Popen([*command, str(root.resolve())], **pipes, env=environment))
            for root in roots
        ]
        for row in rows:
            best = [{} for _ in roots]
            for _ in range(turns):
                for process, least in zip(workers, best, strict=True):
                    print(json.dumps([row.case.name, row.kernel, row.case.layout]), file=process.stdin, flush=True)
                    for name, count in json.loads(process.stdout.readline() or "{}").items():
                        least[name] = min(count, least.get(name, count))
            if not all(best):
                sys.exit("a worker has ended")
            yield row, best


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.counters", description=__doc__.splitlines()[0])
    parser.add_argument("roots", nargs="+", type=Path, metavar="ROOT", help="checkouts with kernels built in place")
    parser.add_argument("--match", type=regex, default="", metavar="REGEX", help="layers whose name has this")
    parser.add_argument("--op", type=listed(KERNELS), default=KERNELS, help="kernels (all)")
    parser.add_argument("--layout", type=listed(LAYOUTS), default=LAYOUTS, help="layouts (both)")
    parser.add_argument("--turns", type=int, default=3, help="of each build on each row (%(default)s)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        return worker(str(options.roots[0]))
    rows = suites.rows(operations=options.op, layouts=options.layout, match=options.match)
    if not rows or options.turns < 1:
        parser.error("no layer is left" if not rows else "--turns must be 1 or more")
    print(f"one thread; cycles, instructions per cycle and lines from beyond the second cache of {options.roots[0]};")
    print("of the others, how many times as many cycles and lines\n")
    ratios = [[] for _ in options.roots[1:]]
    for row, (first, *others) in compare(options.roots, rows, options.turns):
        texts = [f"{first['cycles']:9.3g} {first['instructions'] / first['cycles']:5.2f} {first['lines']:9.3g}"]
        for own, least in zip(ratios, others, strict=True):
            own.append(least["cycles"] / first["cycles"])
            texts.append(f"{own[-1]:6.2f} {least['lines'] / max(first['lines'], 1):6.2f}")
        print(f"{row.case.name:<34}{row.kernel:<6}{row.case.layout:<4}", *texts, flush=True)
    print("\nmean of the ratios of cycles:", *(f"{geometric_mean(own):.3f}" for own in ratios if own))
    return 0


if __name__ == "__main__":
    sys.exit(main())
