"""When a data gradient is formed from columns (columns.py).

Measured by ``python -m bench --suite reports --peers=``, which has rows on both sides of each.
"""

from .number import same

TABLE = (
    same(
        "column_products", 16, "products of an element of a column", "reports",
        "So many more could be formed while an element of a column is stored, loaded and added.",
    ),
    same(
        "column_row_products", 80, "products of a row of taps", "reports",
        "What adding a row takes, however short it is: its taps share it.",
    ),
    same(
        "column_call_products", 320_000, "products", "reports",
        "A second kernel for the columns: of a tiny product, that is most of the time.",
    ),
    same(
        "least_column_gain", 1.32, "times as fast, for each axis of the filter", "reports",
        "The sum itself leaves out products beyond y, and more of them where taps are dilated (by the root of that), "
        "and where images fill its tiles: each further one counts twice.",
    ),
    same(
        "most_column_images", 4, "images", "reports",
        "With more, columns leave the cache, and tiles are filled by images.",
    ),
    same(
        "least_column_pairs", 128, "pairs of channels in a group", "reports",
        "With fewer, the exchange of y and the filter fills the vectors with taps, and adds nothing afterwards.",
    ),
)  # fmt: skip
