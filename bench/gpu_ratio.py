"""Our gradients against cuDNN's on one GPU: python -m bench.gpu_ratio --out FOLDER (under 8 minutes on an H200).

Needs CuPy and PyTorch. Writes gpu_ratio.json, .md and .png, and prints the table.
"""

import argparse
import json
import sys
import time
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path

from . import gpu_report, gpu_rows


def missing():
    """Why nothing can be measured here, or None."""
    for name, why in (("cupy", "our arrays"), ("torch", "the door to cuDNN"), ("ml_dtypes", "bfloat16")):
        if find_spec(name) is None:
            return f"{name} is not installed ({why})"
    import cupy
    import torch

    return None if cupy.is_available() and torch.cuda.is_available() else "there is no CUDA GPU, or no driver for it"


def description(row):
    """What a row of the JSON file says before its numbers."""
    case, group = row.case, row.group
    return {
        "layer": case.name,
        "kernel": row.kernel,
        "group": group.name,
        "dtype": case.dtype,
        "layout": case.layout,
        "precision": group.precision,
        "tf32": group.tf32,
        "flop": case.flop,
        "bytes": case.bytes,
    }


def measured(row, measure):
    """The finished row. What fails is written down, and the next row is measured."""
    try:
        found = measure.Measurement(row).run()
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return {**description(row), "right": False, "bitwise": False, "failed": f"{type(error).__name__}: {lines[0]}"}
    return {**description(row), **found, "right": measure.is_right(row, found)}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_ratio", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("bench/results"), metavar="FOLDER", help="for JSON, table, plot"
    )
    parser.add_argument("--name", default="gpu_ratio", help="of these files")
    parser.add_argument("--minutes", type=float, default=7.5, help="rows that would begin later are left out")
    parser.add_argument("--match", default="", help="rows with this in layer, gradient or group")
    parser.add_argument("--list", action="store_true", help="say what would be measured")
    options = parser.parse_args(argv)
    rows = gpu_rows.rows(options.match)
    if not rows:
        parser.error(f"--match must be part of a row's name, was {options.match!r}")
    if options.list:
        print(*(row.name for row in rows), sep="\n")
        return
    reason = missing()
    if reason is not None:
        parser.exit(2, f"python -m bench.gpu_ratio: {reason}\n")

    from . import gpu_machine, gpu_measure

    end = time.monotonic() + 60 * options.minutes
    data = {
        "about": {**gpu_machine.about(), "date": datetime.now(timezone.utc).isoformat(timespec="seconds")},
        "ceilings": gpu_machine.ceilings(),
        "rows": [],
        "left_out": [],
    }
    print(json.dumps({name: data[name] for name in ("about", "ceilings")}, indent=1), flush=True)
    for row in rows:
        if time.monotonic() > end:
            data["left_out"].append(row.name)
            continue
        found = measured(row, gpu_measure)
        gpu_measure.release()
        data["rows"].append(found)
        times = " ".join(f"{found.get(name, float('nan')):9.1f}" for name in ("ours_us", "cudnn_us"))
        value = gpu_report.ratio(found)
        print(
            f"{times} {'-' if value is None else format(value, '.2f'):>6} {row.name} {gpu_report.remark(found)}",
            flush=True,
        )
    gpu_report.write(data, options.out, options.name)
    print(gpu_report.by_group(data))
    if not all(row["right"] for row in data["rows"]):
        sys.exit("some results were wrong")


if __name__ == "__main__":
    main()
