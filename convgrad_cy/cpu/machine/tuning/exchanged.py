"""Limits for exchanging the filter and y (rewrites/exchanged.py): how much larger than y the filter must be."""

from .number import Number, same

TABLE = (
    same(
        "least_larger_filter", 2.5, "taps for each position",
        "The limit for data gradients and for groups. An exchange has fewer products by this factor, or longer rows, "
        "but it copies x and has shorter sums over channels.",
    ),
    same(
        "larger_filter_of_lanes", 5, "taps for each position, of a data gradient",
        "The limit if small_groups has a table for the taps: it computes them without an exchange.",
    ),
    same(
        "larger_filter", 10, "taps for each position, of fprop and wgrad",
        "The limit without groups, and for fprop with a table for the taps. Channels, or small groups side by side, "
        "fill the vectors then, and rows count for less.",
    ),
    same(
        "most_group_terms", 2500, "taps and channels of a group",
        "With more, the sums of small groups leave the cache, and the exchange is faster for several images, too.",
    ),
    Number(
        "most_padded_group_terms", 1000, 500, "taps and channels of a group",
        "As `most_group_terms`, for up to `most_padded_images` images that are smaller than the filter.",
    ),
    same(
        "most_depthwise_taps", 700, "taps",
        "As `most_group_terms`, for data gradients of groups of one channel.",
    ),
    same(
        "most_padded_images", 4, "images",
        "After the exchange, images are channels of a group, and small groups do not take more of them.",
    ),
    same(
        "least_exchanged_overlap", 3, "taps for each step of the stride on an axis, without groups",
        "The limit of fprop and wgrad. The exchange turns stride into dilation. If taps then share few elements, a "
        "window has a copy for each tap.",
    ),
    same(
        "least_exchanged_overlap_of_groups", 6, "taps for each step of the stride on an axis, with groups",
        "As `least_exchanged_overlap`. (16 groups of one channel, 30 x 30 taps, a stride of 20: 134 ms exchanged, 0.1 "
        "ms otherwise.)",
    ),
)  # fmt: skip
