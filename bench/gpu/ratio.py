"""Our gradients against cuDNN's on one GPU: python -m bench.gpu.ratio --out FOLDER (under 8 minutes on an H200).

Needs CuPy and PyTorch. Writes gpu_ratio.json after each row, .md and .png at the end, and prints the table. A separate
process measures. If an error takes the GPU from it, the next row has a new process.
"""

import argparse
import json
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

from .. import results
from . import child as gpu_child
from . import report
from . import rows as gpu_rows

#: Seconds after which a row hangs.
PATIENCE = 60


def missing():
    """The reason why nothing can be measured here, or None."""
    reason = gpu_child.missing(("torch", "the door to cuDNN"))
    if reason is not None:
        return reason
    import torch

    return None if torch.cuda.is_available() else "PyTorch finds no CUDA GPU"


def description(row):
    """The fields of a row of the JSON file before its numbers."""
    case, group = row.case, row.group
    return {
        "layer": case.name,
        "kernel": row.kernel,
        "group": group.name,
        "dtype": case.dtype,
        "layout": case.layout,
        "precision": group.precision,
        "tf32": group.tf32,
        "flop": case.flop * (2 if row.kernel == "both" else 1),
        "bytes": case.bytes,
    }


class Worker:
    """The requests that a process with the GPU answers."""

    def __init__(self):
        from . import machine, measure

        self.machine, self.measure = machine, measure

    def about(self):
        return {"about": self.machine.about(), "ceilings": self.machine.ceilings()}

    def row(self, name, deterministic):
        self.measure.release()  # the memory of the row before, even if that one failed
        (row,) = (row for row in gpu_rows.rows(name) if row.name == name)
        found = self.measure.Measurement(row).run(deterministic)
        return {**found, "right": self.measure.is_right(row, found)}


def finished(row, reply):
    """The row of the result. A failed row counts as wrong."""
    wrong = {"right": False, "bitwise": False} if "failed" in reply else {}
    return {**description(row), **wrong, **reply}


def line(found, name):
    """The printed line of a row."""
    times = " ".join(f"{found.get(side, float('nan')):9.1f}" for side in ("ours_us", "cudnn_us"))
    value = report.ratio(found)
    launch = f"\n    launch: {found['launch']}" if found.get("launch") else ""
    return f"{times} {'-' if value is None else format(value, '.2f'):>6} {name} {report.remark(found)}{launch}"


def measure(rows, end, path, child, deterministic=False):
    """The result, in a file after each row. Rows that would begin after ``end`` are left out."""
    about = child.ask("about")
    if "failed" in about:
        sys.exit(f"nothing can be measured: {about['failed']}")
    about["about"]["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    data = {**about, "rows": [], "left_out": []}
    print(json.dumps(about, indent=1), flush=True)
    for row in rows:
        if time.monotonic() > end:
            data["left_out"].append(row.name)
            continue
        found = finished(row, child.ask("row", PATIENCE, name=row.name, deterministic=deterministic))
        data["rows"].append(found)
        results.write(data, path)
        print(line(found, row.name), flush=True)
    return data


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.ratio", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for JSON, table, plot")
    parser.add_argument("--name", default="gpu_ratio", help="of these files")
    parser.add_argument("--minutes", type=float, default=7.5, help="rows that would begin later are left out")
    parser.add_argument(
        "--match",
        action="append",
        default=[],
        help="rows with this in layer, gradient or group; several: in this order",
    )
    parser.add_argument("--deterministic", action="store_true", help="time cuDNN's deterministic algorithms, too")
    parser.add_argument("--list", action="store_true", help="print the rows that would be measured")
    options = parser.parse_args(argv)
    for match in options.match:
        if not gpu_rows.rows(match):
            parser.error(f"--match must be part of a row's name, was {match!r}")
    rows = gpu_rows.rows(*options.match)
    if options.list:
        print(*(row.name for row in rows), sep="\n")
        return
    reason = missing()
    if reason is not None:
        parser.exit(2, f"python -m bench.gpu.ratio: {reason}\n")

    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        child = gpu_child.Child("ratio", Path(folder))
        data = measure(rows, end, options.out / f"{options.name}.json", child, options.deterministic)
        child.end()
    report.write(data, options.out, options.name)
    print(report.by_group(data))
    if not all(row["right"] for row in data["rows"]):
        sys.exit("some results were wrong")


if __name__ == "__main__":
    main()
