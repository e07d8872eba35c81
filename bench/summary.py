"""Arithmetic on the rows of a result: rates, ratios, means. It needs only the result that ``results.read`` returns."""

from math import exp, fsum, log

from .peers import OURS


def seconds(row, name):
    """The time of a library on a row, or None if it has none."""
    return row["results"].get(name, {}).get("seconds")


def rate(row, name):
    """Useful FLOP per second, or None."""
    time = seconds(row, name)
    return row["flop"] / time if time else None


def peers_of(data):
    return [name for name in data["libraries"] if name != OURS]


def best_peer(row):
    """(time, name) of the fastest of the others, or None."""
    times = [(seconds(row, name), name) for name in row["results"] if name != OURS]
    return min(((time, name) for time, name in times if time), default=None)


def ratio(row):
    """How many times faster this package is than the fastest of the others; None without both times."""
    ours, best = seconds(row, OURS), best_peer(row)
    return best[0] / ours if ours and best else None


def tile_rate(rows, dtype):
    """FLOP per second of the bare register tile for a type.

    The best rate of a run counts: it is the machine's constant.
    """
    return max((row["tile"] for row in rows if row["dtype"] == dtype), default=0.0)


def share_of_tile(row, rows):
    """The part of the bare register tile's rate that this package reaches, or None.

    ``rows`` are all rows of the run.
    """
    ours, tile = rate(row, OURS), tile_rate(rows, row["dtype"])
    return ours / tile if ours and tile else None


def geometric_mean(values):
    """Geometric mean of positive numbers; None if there are none."""
    values = list(values)
    return exp(fsum(map(log, values)) / len(values)) if values else None


def ratios(rows):
    """(ratio, row) of the rows that have a ratio, the worst first."""
    return sorted(((ratio(row), row) for row in rows if ratio(row)), key=lambda pair: pair[0])


def grouped(rows, *fields):
    """Rows by the values of some of their fields, in the order in which they come."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[field] for field in fields), []).append(row)
    return groups


def step_seconds(rows, name):
    """Time of a library for all rows, each as often as the network has the layer; None if a row has no time."""
    times = [(row["count"], seconds(row, name)) for row in rows]
    return fsum(count * time for count, time in times) if all(time for _, time in times) else None


def troubles(rows, name=OURS):
    """(row, message) of the rows whose result is wrong, or missing because of a fault of the library."""
    return [
        (row, result.get("wrong") or result["failed"])
        for row in rows
        for result in [row["results"].get(name, {})]
        if "wrong" in result or "failed" in result
    ]
