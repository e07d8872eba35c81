"""The report of the check: a table that grows while records come, the failures, and the same in JSON."""

import json
import platform
from contextlib import suppress

from .. import output
from ..info import lines as installation
from .functions import COLUMNS

#: The ends of the columns of the table: the part, the type, one for each column of functions, the threads.
_ROW = "{:<16} {:<9}" + " {:>11}" * (len(COLUMNS) + 1) + "  {}"


def _processor(path="/proc/cpuinfo"):
    """The name of the processor that the system tells, or of its architecture."""
    with suppress(OSError, StopIteration), open(path, errors="replace") as file:
        return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    return platform.processor() or platform.machine()


def machine():
    """Name -> value: the processor, the system, and all that ``info`` prints."""
    return {"processor": _processor(), "system": platform.platform(), **_joined(installation())}


def _joined(pairs):
    """The pairs as a dict. A machine with several GPUs has several values of one name."""
    joined = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]}; {value}" if name in joined else str(value)
    return joined


def print_machine(values):
    for name, value in values.items():
        output.line(f"{name:<13}{value}")


def print_head():
    output.line()
    output.line(_ROW.format("part", "type", *COLUMNS, "threads", "result"))


def _cell(records):
    """The number of results of some records, and the number of wrong ones."""
    checked, failed = (sum(record[name] for record in records) for name in ("checked", "failed"))
    return f"{failed}/{checked} BAD" if failed else str(checked)


def _verdict(records):
    if any(record["failed"] for record in records):
        return "FAIL"
    return "pass" if any(record["checked"] for record in records) else ""


def print_row(records):
    """Print the row of a part and a type: either the records of all functions, or one record without a function."""
    first, verdict = records[0], _verdict(records)
    if "function" in first:
        cells = [_cell([record for record in records if record["column"] == column]) for column in COLUMNS]
        threads = sum(record["threads"] for record in records)
        output.line(_ROW.format(first["part"], first["row"], *cells, threads, verdict))
        return
    cell = _cell(records) if first["checked"] else "-"
    said = ", ".join(filter(None, [verdict, first.get("note")]))
    output.line(f"{first['part']:<16} {first['row']:<9} {cell:>11}  {said}")


def print_end(records, seconds):
    """Print the failures and the verdict."""
    failed = [record for record in records if record["failed"]]
    if failed:
        output.line()
    for record in failed:
        for text in record["told"]:
            output.line(f"FAIL {record['part']} {record['row']}: {text}")
        if more := record["failed"] - len(record["told"]):
            output.line(f"FAIL {record['part']} {record['row']}: {more} more like these")
    checked = sum(record["checked"] for record in records)
    output.line()
    if failed:
        wrong = sum(record["failed"] for record in records)
        output.line(f"FAILED: {wrong} of {checked} results are wrong ({seconds:.0f} s)")
        output.line("Please report it, with this whole text.")
    else:
        output.line(f"passed: {checked} results ({seconds:.0f} s)")


def as_json(values, records, seconds):
    """The report as bytes."""
    passed = not any(record["failed"] for record in records)
    report = {"passed": passed, "seconds": round(seconds, 1), "machine": values, "records": records}
    return json.dumps(report, indent=1, ensure_ascii=False).encode() + b"\n"
