"""When the filter and y exchange places (rewrites/exchanged.py): how many times as large as y the filter is."""

from .number import same

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
        "larger_filter", 10, "taps for each position, of the others",
        "Channels, or small groups side by side, fill the vectors then, and rows count for less.",
    ),
    same(
        "most_group_terms", 1000, "taps and channels of a group",
        "With more, the sums of small groups leave the cache, and the exchange is faster for several images, too.",
    ),
    same(
        "least_exchanged_overlap", 3, "taps for each step of the stride on an axis, of the others without groups",
        "A stride is dilation in the exchange: a window has a part for each tap where taps share little.",
    ),
    same(
        "least_exchanged_overlap_of_groups", 6, "taps for each step of the stride on an axis, of others of groups",
        "As `least_exchanged_overlap`. (16 groups of one channel, 30 x 30 taps 20 apart: 134 ms, not 0.1.)",
    ),
)  # fmt: skip
