"""Limits of data gradients on cells (rewrites/overlaps.py)."""

from .number import same

TABLE = (
    same(
        "most_patch_channels", 16, "channels of x",
        "With more, the usual kernels fill most of a vector for each tap or stride phase.",
    ),
    same(
        "least_patch_products", 32, "products of an element of x for each of its channels",
        "If patches do not overlap. With fewer, the copies of x and of the filter take more time than the phases lose. "
        "A phase has one output for each channel of x, so the limit grows with the channels.",
    ),
    same(
        "least_cell_elements", 64, "elements of the largest part of a cell",
        "Fewer elements leave most of a tile empty, as stride phases do.",
    ),
    same(
        "least_elements_of_all_parts", 32, "elements of the smallest part of a cell",
        "This smaller number is enough if every part has it.",
    ),
    same(
        "least_overlapped_products", 48, "products of an element of x for each of its channels",
        "With fewer products, the copy of x takes longer than the cells save. A strided sum forms one product for each "
        "channel of x at a time, so the limit grows with the channels.",
    ),
)  # fmt: skip
