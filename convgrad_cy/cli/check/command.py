"""The command ``check``: runs all parts, prints their rows as they come, and returns whether all have passed."""

from time import perf_counter

from ... import atomic_file, cpu
from .. import output
from . import processes, report
from .child import PARTS
from .functions import FUNCTIONS
from .storage import STORAGES


class NoReport(Exception):
    """The file of --json cannot be written; the message has the reason."""


def add_arguments(command):
    """Add the arguments of the command."""
    command.add_argument("--json", metavar="FILE", help="write the report to a file, too: an object with all counts")


def _parts():
    """(name, part, variables) of each process."""
    for isa in cpu.available_isas():
        yield isa, "kernels", {"CONVGRAD_CY_ISA": isa}
    for part in PARTS:
        if part != "kernels":
            yield part, part, {}


def _rows():
    """The records of all parts, as lists: each is a row of the table. It shows the progress."""
    per_isa = len(STORAGES) * len(FUNCTIONS) + 1
    total, done = per_isa * len(cpu.available_isas()) + len(PARTS) - 1, 0
    for name, part, variables in _parts():
        alike = []
        output.progress(done, total, name)
        for record in processes.records(part, name, **variables):
            done = min(done + 1, total)
            if alike and record["row"] != alike[0]["row"]:  # the process has ended in the middle of a row
                yield alike
                alike = []
            alike.append(record)
            if "function" not in record or len(alike) == len(FUNCTIONS):
                output.clear_progress()
                yield alike
                alike = []
            output.progress(done, total, f"{name} {record['row']}")
    output.clear_progress()


def _check_file(path):
    try:
        atomic_file.check(path)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise NoReport(f"--json cannot be written to {path!r}: {output.reason(error)}") from error


def check(json_file=None):
    """Print the report; True if everything has passed. `NoReport` if the file cannot be written."""
    if json_file is not None:
        _check_file(json_file)
    start, values, records = perf_counter(), report.machine(), []
    report.print_machine(values)
    report.print_head()
    for row in _rows():
        report.print_row(row)
        records += row
    seconds = perf_counter() - start
    report.print_end(records, seconds)
    if json_file is not None:
        try:
            with atomic_file.replaced(json_file) as file:
                file.write(report.as_json(values, records, seconds))
        except OSError as error:
            raise NoReport(f"--json cannot be written to {json_file!r}: {output.reason(error)}") from error
    return not any(record["failed"] for record in records)
