"""Limits of data gradients by columns (rewrites/columns.py). dgrad_costs.py has their costs.

``python -m bench --suite reports --peers=`` has rows on both sides of each limit.
"""

from .number import same

TABLE = (
    same(
        "column_bytes", 4 << 20, "bytes of columns",
        "The columns of a part should stay in the last cache until they are added. Smaller parts read y more often.",
    ),
    same(
        "least_column_gain", 1.1, "times as few products as direct",
        "The direct sum is tuned well for filters that are not much larger than y, so columns need a clear gain.",
    ),
    same(
        "least_gain_over_cells", 1.3, "times as few products as direct",
        "As `least_column_gain`, where `overlaps` can compute the gradient: it adds no columns.",
    ),
    same(
        "most_column_groups", 16, "groups",
        "More groups fill vectors side by side. As columns, each would have a small product of its own.",
    ),
)  # fmt: skip
