"""The output of ``python -m bench``: one line for each row, and a summary."""

import sys
import time

from . import summary
from .peers import OURS

#: Names of the six functions for a narrow column.
SHORT = {
    "conv": "conv",
    "conv_backward_data": "conv d data",
    "conv_backward_filter": "conv d filter",
    "conv_transpose": "transpose",
    "conv_transpose_backward_data": "transpose d data",
    "conv_transpose_backward_filter": "transpose d filter",
}
SIGNS = {"skipped": "~", "wrong": "!", "failed": "x"}
LAYER, FUNCTION, CELL = 31, 19, 11


def rate_cell(row, name):
    """GFLOP/s, or a sign: - not offered, ~ too slow to wait for, ! wrong, x failed."""
    rate = summary.rate(row, name)
    if rate is not None:
        return f"{rate * 1e-9:.1f}" if rate > 1e10 else f"{rate * 1e-9:.2g}"
    result = row["results"].get(name, {})
    return next((sign for kind, sign in SIGNS.items() if kind in result), "-")


def number(value, form, missing="-"):
    return missing if value is None else format(value, form)


def header(peers):
    cells = "".join(f"{name:>{CELL}}" for name in ("ours", "% of tile", *peers, "ratio"))
    return f"{'layer':<{LAYER}}{'operation':<{FUNCTION}}{'':<4}{cells}"


def line(row, rows, peers):
    cells = [
        rate_cell(row, OURS),
        number(summary.share_of_tile(row, rows), ".0%"),
        *(rate_cell(row, name) for name in peers),
        number(summary.ratio(row), ".2f"),
    ]
    cells = "".join(f"{cell:>{CELL}}" for cell in cells)
    return f"{row['layer']:<{LAYER}}{SHORT[row['function']]:<{FUNCTION}}{row['layout']:<4}{cells}"


def megabytes(value):
    return "unknown" if value is None else f"{value / 2**20:.1f} MiB"


def place(row):
    return f"{row['layer']} {row['function']} {row['layout']} {row['dtype']}"


def conclusion(data):
    """The lines after the table."""
    rows = data["rows"]
    found = []
    for (suite, dtype, layout), group in summary.grouped(rows, "suite", "dtype", "layout").items():
        pairs = summary.ratios(group)
        mean = summary.geometric_mean(value for value, _ in pairs)
        found.append(
            f"  {suite:<12}{dtype:<10}{layout:<5}{number(mean, '6.2f'):>6}  ({len(pairs)} of {len(group)} rows)"
        )
    lines = ["ratio to the fastest of the others, geometric mean:", *found] if summary.peers_of(data) else []
    if pairs := summary.ratios(rows):
        mean = summary.geometric_mean(value for value, _ in pairs)
        even = sum(value >= 0.95 for value, _ in pairs)
        lines.append(f"all rows: {mean:.2f}; {even} of {len(pairs)} rows at 0.95 or more")
        lines.append(f"worst row: {pairs[0][0]:.2f}, {place(pairs[0][1])}")
    if shares := [(summary.share_of_tile(row, rows), row) for row in rows if summary.rate(row, OURS)]:
        share, row = max(shares, key=lambda pair: pair[0])
        lines.append(f"nearest to the bare tile: {share:.0%}, {place(row)}")
    memory = [(row["results"][OURS]["memory"], row) for row in rows if row["results"].get(OURS, {}).get("memory")]
    if memory:
        peak, row = max(memory, key=lambda pair: pair[0])
        lines.append(f"most memory besides the arrays: {megabytes(peak)}, {place(row)}")
    for name in data["libraries"]:
        faults = summary.troubles(rows, name)
        if faults:
            row, what = faults[0]
            lines.append(f"{name}: wrong or failed in {len(faults)} rows, the first {place(row)}: {what}")
    return lines


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Progress:
    """A bar on standard error if that is a terminal."""

    def __init__(self, total, width=30):
        self.total, self.width, self.start = total, width, time.monotonic()
        self.shown = sys.stderr.isatty()

    def show(self, done, text):
        if self.shown:
            spent = time.monotonic() - self.start
            left = f", {duration(spent / done * (self.total - done))} left" if done else ""
            full = self.width * done // max(1, self.total)
            bar = "#" * full + "." * (self.width - full)
            sys.stderr.write(f"\r\033[K[{bar}] {done}/{self.total}{left}  {text}")
            sys.stderr.flush()

    def clear(self):
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
