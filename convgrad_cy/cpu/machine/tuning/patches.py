"""When a data gradient is formed from cells, if patches do not overlap (rewrites/overlaps.py)."""

from .number import same

TABLE = (
    same(
        "most_patch_channels", 16, "channels of x",
        "With more, the usual kernels fill most of a vector for each tap or stride phase.",
    ),
    same(
        "least_patch_products", 512, "products of an element of x",
        "With fewer, the copies of x and of the filter take more time than the stride phases lose.",
    ),
)  # fmt: skip
