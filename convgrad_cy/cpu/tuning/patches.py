"""When a gradient is formed from patches."""

from .number import same

TABLE = (
    same(
        "most_patch_channels", 16, "channels of x", "vit",
        "With more, the kernels fill most of a vector for each tap by themselves.",
    ),
    same(
        "least_dgrad_elements", 17, "elements of a patch", "vit",
        "Below, the products for each tap are as few as those of a patch, which has to be copied.",
    ),
    same(
        "least_wgrad_elements", 256, "elements of a patch", "vit",
        "The tile of wgrad has taps and channels as rows, which fill it without patches, so it gains less.",
    ),
)  # fmt: skip
