"""Arithmetic on the rows of a result: medians, ratios pair by pair, means. It needs the result alone."""

from statistics import median

from bench.peers import OURS
from bench.summary import geometric_mean, grouped

#: Why a row has no ratio.
REASONS = ("wrong", "failed")


def is_timed(row):
    return not any(reason in row for reason in REASONS)


def ratios(row):
    """PyTorch's time to ours, pair by pair: what slows the machine for a while slows both of a pair."""
    return [theirs / ours for theirs, ours in zip(row["seconds"]["torch"], row["seconds"][OURS], strict=True)]


def ratio(row):
    """How many times faster a step is with our kernels; None if there is no time."""
    return median(ratios(row)) if is_timed(row) else None


def least_ratio(row):
    """The same of the shortest step of each."""
    return min(row["seconds"]["torch"]) / min(row["seconds"][OURS])


def limit(row):
    """The ratio if convolutions took no time at all."""
    return 1 / (1 - row["convolutions"]["torch"]["all"])


def means(rows):
    """[(fields, mean, number)] of the rows that have a ratio, by type and mode."""
    timed = [row for row in rows if is_timed(row)]
    groups = grouped(timed, "dtype", "mode").items()
    return [(fields, geometric_mean(map(ratio, group)), len(group)) for fields, group in groups]


def trouble(row):
    """What went wrong in a row, or None."""
    return next((f"{reason}: {row[reason]}" for reason in REASONS if reason in row), None)
