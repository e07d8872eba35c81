"""Costs of data gradients whose filter is larger than y (rewrites/dgrad_costs.py).

All were fitted together to some 450 random layers (``python -m bench.extremes --sets random --op dgrad``), computed in
all three ways. The costs of columns were fitted again with the layers of curves.
"""

from .number import same

TABLE = (
    same("sum_cycles", 0.55, "cycles of a vector of products", "A sum leaves out some taps beyond y."),
    same(
        "row_fill", 0.385, "of the vectors that channels fill",
        "The part that the direct sum fills with tiles across the positions of a row, whose source is copied.",
    ),
    same("filter_cycles", 0.335, "cycles of an element of the filter", "The sum itself packs it."),
    same(
        "walk_cycles", 425, "cycles of a stride phase",
        "The start of the loops of a phase. Exchanged, it is a phase of the dilation.",
    ),
    same(
        "exchanged_cycles", 0.2, "cycles of a vector of products",
        "Exchanged, a sum also leaves out the products beyond the filter.",
    ),
    same("exchanged_row_fill", 0.065, "of the vectors that images fill", "As `row_fill`, exchanged."),
    same(
        "exchanged_element_cycles", 1.7, "cycles of an element of x",
        "Exchanged, channels of x are images, and each stores rows of its own.",
    ),
    same("column_cycles", 0.66, "cycles of an element of a column", "To store, load and add it."),
    same(
        "large_columns", 3, "times these cycles",
        "A channel of x with more than `column_bytes` is a part of its own, and its columns leave the last cache.",
    ),
    same(
        "column_run_cycles", 0.97, "cycles of adjacent taps",
        "To find where they are added, however few they are.",
    ),
    same("widening_cycles", 1.0, "cycles of an element", "A type of 16 bits is made float for columns."),
    same("column_call_cycles", 24000, "cycles", "The call of the second kernel, which adds the columns."),
)  # fmt: skip
