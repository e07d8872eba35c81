"""The output of ``python -m bench.training``: one line for each row, and a summary."""

from statistics import median

from bench.models import MODELS
from bench.peers import OURS

from . import FRAMEWORKS, summary

MODEL, FIELD, CELL = 31, 10, 12
#: The shares of a step that PyTorch's profiler gives: convolutions with PyTorch's kernels, and biases with ours.
SHARES = {"torch": ("conv. share", "bias share"), "jax": ()}


def titles(framework):
    return [f"{FRAMEWORKS[framework].title}, s", "ours, s", "ratio", "of minima", *SHARES[framework]]


def header(framework):
    fields = "".join(f"{name:<{FIELD}}" for name in ("type", "layout", "mode"))
    return f"{'model':<{MODEL}}{fields}" + "".join(f"{name:>{CELL}}" for name in titles(framework))


def cells(row):
    """Median times, ratios, and the known shares of a step."""
    theirs = summary.theirs(row)
    found = [
        f"{median(row['seconds'][theirs]):.3f}",
        f"{median(row['seconds'][OURS]):.3f}",
        f"{summary.ratio(row):.2f}",
        f"{summary.least_ratio(row):.2f}",
    ]
    if "convolutions" in row:
        shares = row["convolutions"]
        found += [f"{shares[theirs]['all']:.0%}", f"{shares[OURS]['bias']:.1%}"]
    return found


def line(row):
    fields = "".join(f"{row[name]:<{FIELD}}" for name in ("dtype", "layout", "mode"))
    shown = "".join(f"{cell:>{CELL}}" for cell in cells(row)) if summary.is_timed(row) else summary.trouble(row)
    return f"{MODELS[row['model']].title:<{MODEL}}{fields}{shown}"


def conclusion(data):
    """The lines after the table."""
    title = FRAMEWORKS[summary.framework_of(data)].title
    lines = [f"{title}'s time for a step to ours, geometric mean:"]
    lines += [
        f"  {dtype:<{FIELD}}{mode:<{FIELD}}{mean:6.2f}  ({count} rows)"
        for (dtype, mode), mean, count in summary.means(data["rows"])
    ]
    passed_on = {reason for row in data["rows"] for reason in row.get("passed_on", {})}
    lines += [f"computed by {title} all the same: {reason}" for reason in sorted(passed_on)]
    return lines
