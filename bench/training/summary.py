"""Arithmetic on the rows of a result: medians, ratios pair by pair, means. It needs only the result."""

from statistics import median

from bench.peers import OURS
from bench.summary import geometric_mean, grouped

#: Fields with the reason why a row has no ratio.
REASONS = ("wrong", "failed")


def is_timed(row):
    return not any(reason in row for reason in REASONS)


def framework_of(data):
    """The framework whose kernels took turns with ours."""
    return data.get("framework", "torch")


def theirs(row):
    """The name of the framework that a row's times belong to."""
    return next(name for name in row["seconds"] if name != OURS)


def ratios(row):
    """The framework's time over ours, pair by pair. Load from other programs slows both steps of a pair."""
    return [other / ours for other, ours in zip(row["seconds"][theirs(row)], row["seconds"][OURS], strict=True)]


def ratio(row):
    """How many times faster a step is with our kernels; None if there is no time."""
    return median(ratios(row)) if is_timed(row) else None


def least_ratio(row):
    """The ratio of the shortest steps: the framework's time over ours."""
    return min(row["seconds"][theirs(row)]) / min(row["seconds"][OURS])


def limit(row):
    """The ratio if convolutions took no time at all; None if their share is not known."""
    return 1 / (1 - row["convolutions"][theirs(row)]["all"]) if "convolutions" in row else None


def means(rows):
    """[(fields, mean, number)] of the rows that have a ratio, by type and mode."""
    timed = [row for row in rows if is_timed(row)]
    groups = grouped(timed, "dtype", "mode").items()
    return [(fields, geometric_mean(map(ratio, group)), len(group)) for fields, group in groups]


def trouble(row):
    """The message of a faulty row, or None."""
    return next((f"{reason}: {row[reason]}" for reason in REASONS if reason in row), None)
