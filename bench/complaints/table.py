"""The results of complaints as lines, and as Markdown."""

from statistics import median

from bench.peers import OURS
from bench.report import markdown_table
from bench.training import summary

from . import COMPLAINTS

TITLE, CELL = 56, 12
COLUMNS = ("XLA", "ours", "times")
#: The title of a column. It is not the ratio of the two median times, which stand before it.
SPEEDUP = "speedup (median of pairs)"


def duration(seconds):
    """A time in the greatest unit that gives at least one."""
    units = {"s": 1, "ms": 1e-3, "µs": 1e-6}
    unit = next((unit for unit in units if seconds >= units[unit]), "µs")
    return f"{seconds / units[unit]:.3g} {unit}"


def cells(row):
    """The median times and the speedup."""
    times = [median(row["seconds"][side]) for side in (summary.theirs(row), OURS)]
    return [*map(duration, times), f"{summary.ratio(row):.3g}"]


def header():
    return f"{'convolution':<{TITLE}}" + "".join(f"{name:>{CELL}}" for name in COLUMNS)


def line(row):
    shown = "".join(f"{cell:>{CELL}}" for cell in cells(row)) if summary.is_timed(row) else summary.trouble(row)
    passed_on = "".join(f"; XLA computed it: {reason}" for reason in row.get("passed_on", ()))
    return f"{COMPLAINTS[row['complaint']].title:<{TITLE}}{shown}{passed_on}"


def markdown(data):
    """A table with a link to each report."""
    lines = [
        [_linked(COMPLAINTS[row["complaint"]]), *(cells(row) if summary.is_timed(row) else ("–", "–", "–"))]
        for row in data["rows"]
    ]
    return markdown_table(["convolution", "XLA", "convgrad_cy", SPEEDUP], lines)


def _linked(complaint):
    if complaint.report is None:
        return complaint.title
    repository, number = complaint.report.split("#")
    name = repository.rpartition("/")[2]
    return f"{complaint.title} ([{name} {number}](https://github.com/{repository}/issues/{number}))"
