"""Costs of data gradients whose filter is larger than y (rewrites/dgrad_costs.py).

All were fitted together to about 450 random layers (``python -m bench.extremes --sets random --op dgrad``), computed in
all three ways. The costs of columns were fitted again with the layers of the curves.
"""

from .number import same

TABLE = (
    same("sum_cycles", 0.55, "cycles of a vector of products", "The direct sum skips some taps outside y."),
    same(
        "row_fill", 0.385, "of the vectors that channels fill",
        "The part that the direct sum fills with tiles across the positions of a row, whose source is copied.",
    ),
    same("filter_cycles", 0.335, "cycles of an element of the filter", "Direct packs the filter."),
    same(
        "walk_cycles", 425, "cycles of a stride phase",
        "The start of the loops of a phase. After the exchange, it is a phase of the dilation.",
    ),
    same(
        "exchanged_cycles", 0.2, "cycles of a vector of products",
        "After the exchange, the sum skips some products outside the filter.",
    ),
    same("exchanged_row_fill", 0.065, "of the vectors that images fill", "As `row_fill`, after the exchange."),
    same(
        "exchanged_element_cycles", 1.7, "cycles of an element of x",
        "After the exchange, the channels of x are images, and each stores rows of its own.",
    ),
    same("column_cycles", 0.66, "cycles of an element of a column", "To store, load and add it."),
    same(
        "large_columns", 3, "times these cycles",
        "A channel of x with more than `column_bytes` is a part of its own, and its columns leave the last cache.",
    ),
    same(
        "column_run_cycles", 0.97, "cycles of adjacent taps",
        "The search for the place where they are added, whatever their number is.",
    ),
    same("widening_cycles", 1.0, "cycles of an element", "For columns, a 16-bit type is converted to float."),
    same("column_call_cycles", 24000, "cycles", "The call of the second kernel, which adds the columns."),
)  # fmt: skip
