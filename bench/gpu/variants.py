"""Every variant of every kernel on one GPU, exact against the CPU: python -m bench.gpu.variants [--family ...].

A row forces one choice of a family (bench/gpu/forced.py) on problems with tails in all sizes. Its data are integers,
then NaN and infinity near padding, which must reach exactly the results that have them in a term. Results are poisoned
before, and formed twice. A row that raises names its launch. After an error that takes the GPU from a process, the next
row has a new one. Needs CuPy and ml_dtypes.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from .. import results
from ..report import markdown_table
from . import forced
from .child import STICKY, Answers, Child, missing
from .variant_calls import Worker
from .variant_rows import GROUPS, KINDS, KINDS_OF

#: The status if all rows were right for which there was time.
_LEFT_OUT = 4
#: Seconds after which a row hangs. The first row of a process makes its context, and every row may compile.
PATIENCE = 60


class Results:
    """The findings, in a file after each row, until ``end`` on the monotonic clock.

    For correct rows, it has their number. For other rows, it has their names and all findings.
    """

    def __init__(self, path, end, about, variants):
        self.path, self.end, self.variants, self.lock = path, end, set(variants), Lock()
        self.data = {"about": about, "groups": {}, "faults": {}, "left_out": [], "unreached": []}

    def add(self, group, name, reply):
        with self.lock:
            self.variants -= set(reply.pop("launched", ()))
            state = "RAISED" if "failed" in reply else "WRONG" if reply["wrong"] else "PASS"
            states = self.data["groups"].setdefault(group, {})
            states[state] = states.get(state, 0) + 1
            if state != "PASS":
                self.data["faults"][name] = {"state": state, **reply}
                print(f"{state} {name}\n    {explained(reply)}", flush=True)
            self.save()

    def leave_out(self, name):
        with self.lock:
            self.data["left_out"].append(name)

    def save(self):
        raised = {group.split()[0] for group, states in self.data["groups"].items() if "RAISED" in states}
        self.data["families"] = ",".join(name for name in forced.FAMILIES if name not in raised or name == "gather")
        if self.path is not None:
            results.write(self.data, self.path)


def explained(reply):
    """A fault in words, with the launch that caused it."""
    text = reply.get("failed") or "; ".join(reply["wrong"])
    return text + (f"\n    launch: {reply['launch']}" if reply.get("launch") else "")


def table(data):
    """The states of the rows, families by types, and the first fault of each pair."""
    counts = {tuple(group.split()): Counter(states) for group, states in data["groups"].items()}
    kinds = [kind for kind in KINDS if any(kind == other for _, other in counts)]

    def cell(family, kind):
        states = counts.get((family, kind), Counter())
        worst = next((state for state in ("RAISED", "WRONG") if states[state]), None)
        return f"**{worst} {states[worst]} of {states.total()}**" if worst else f"PASS {states['PASS']}" * bool(states)

    lines = [[name, *(cell(name, kind) for kind in kinds)] for name in KINDS_OF if any(name == of for of, _ in counts)]
    faults = {}
    for name, reply in data["faults"].items():
        faults.setdefault(tuple(name.split()[:2]), f"{name}: {explained(reply)}")
    left = data["left_out"]
    return "\n".join(
        [
            markdown_table(["family", *kinds], lines),
            *faults.values(),
            *([f"No time was left for {len(left)} rows: {left[0]} and others."] if left else []),
            *(f"No row launched {name}" for name in data["unreached"]),
        ]
    )


def run_group(group, worker, options, results):
    """The rows of a group, as long as there is time."""
    found = worker.ask("rows", PATIENCE, group=group)
    if "failed" in found:
        results.add(group, f"{group} rows", found)
    for name in found.get("rows", ()):
        if not re.search(options.match, name):
            continue
        if time.monotonic() > results.end:
            results.leave_out(name)
            continue
        reply = worker.ask("row", PATIENCE, group=group, name=name)
        results.add(group, name, reply)
        if options.here and "exit" in reply:
            results.end = 0  # there is no other process for the remaining rows


def run(groups, options, folder):
    """The results of all groups. Some of them run at the same time."""
    end = time.monotonic() + options.seconds

    def asked(name):
        return Answers(Worker()) if options.here else Child("variant_calls", folder / name)

    def one(group):
        worker = asked(group.replace(" ", "-"))
        try:
            run_group(group, worker, options, results)
        finally:
            worker.end()

    first = asked("about")
    about = first.ask("about", PATIENCE)
    first.end()
    if "failed" in about:
        raise SystemExit(f"nothing can be run: {explained(about)}")
    results = Results(options.out, end, about["about"], about["variants"])
    with ThreadPoolExecutor(1 if options.here else options.jobs) as pool:
        list(pool.map(one, groups))
    if tuple(groups) == GROUPS and not options.match:
        results.data["unreached"] = sorted(results.variants)
    results.save()
    return results.data


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.variants", description=__doc__.splitlines()[0])
    parser.add_argument("--family", choices=list(KINDS_OF), action="append", help="can be repeated")
    parser.add_argument("--dtype", choices=list(KINDS), action="append", help="float32 is each precision of it")
    parser.add_argument("--match", default="", help="a regular expression, searched in the names of rows")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, each for a family and a type")
    parser.add_argument("--seconds", type=float, default=1e9, help="rows that would begin later are left out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON, written after each row")
    parser.add_argument(
        "--here", nargs=2, metavar=("FAMILY", "TYPE"), help="these alone and in this process, for compute-sanitizer"
    )
    parser.add_argument("--list", action="store_true", help="the families and types")
    options = parser.parse_args(argv)
    groups = [
        group
        for group in GROUPS
        for family, kind in [group.split()]
        if family in (options.family or KINDS_OF) and {kind, KINDS[kind][0]} & {*(options.dtype or KINDS)}
    ]
    if options.here:
        groups = [" ".join(options.here)]
        if groups[0] not in GROUPS:
            parser.error(f"--here must be a line of --list, was {groups[0]!r}")
    if options.list:
        print(*groups, sep="\n")
        return
    reason = missing()
    if reason is not None:
        parser.exit(2, f"python -m bench.gpu.variants: {reason}\n")
    with tempfile.TemporaryDirectory() as folder:
        data = run(groups, options, Path(folder))
    print(table(data))
    sys.exit(status(data, options))


def status(data, options):
    """0 if all rows are right, 4 if those within the time are, the status of ``child`` if the GPU is gone, else 1."""
    if options.here and any("exit" in reply for reply in data["faults"].values()):
        return STICKY
    if data["faults"] or data["unreached"] or not data["groups"]:
        return 1
    return _LEFT_OUT if data["left_out"] else 0


if __name__ == "__main__":
    main()
