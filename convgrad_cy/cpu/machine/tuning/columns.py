"""When a data gradient is formed from columns (rewrites/columns.py), beside what that costs (rewrites/dgrad_costs.py).

Measured by ``python -m bench --suite reports --peers=``, which has rows on both sides of each.
"""

from .number import same

TABLE = (
    same(
        "column_bytes", 4 << 20, "bytes of columns",
        "Of a part: they should stay in the last cache until they are added. Smaller products read y more often.",
    ),
    same(
        "least_column_gain", 1.3, "times as few products",
        "Where a filter is not large beside y, the sum itself is what all else is tuned for.",
    ),
    same(
        "most_column_groups", 16, "groups",
        "More fill vectors side by side, and would have a small product each.",
    ),
)  # fmt: skip
