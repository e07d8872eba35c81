"""When a data gradient is formed from patches."""

from .number import same

TABLE = (
    same(
        "most_patch_channels", 16, "channels of x",
        "With more, the usual kernels fill most of a vector for each tap or stride phase.",
    ),
    same(
        "least_patch_products", 32, "products of an element of x",
        "With fewer, the copy of x takes more time than the products for each tap do.",
    ),
    same(
        "least_patch_elements", 17, "elements of a patch",
        "Smaller patches save no products over one product for each tap, and each patch has to be copied.",
    ),
)  # fmt: skip
