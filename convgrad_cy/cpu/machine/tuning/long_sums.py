"""Limits of long sums, and sizes of their slices (long_sums/)."""

from .number import same

TABLE = (
    same(
        "least_long_terms", 4096, "terms of a sum",
        "Each sum, and each slice of a sum, ends by adding the lanes of a vector. Other families are as fast for "
        "shorter sums.",
    ),
    same(
        "least_long_terms_of_groups", 256, "terms of a sum, for each output of a group",
        "As `least_long_terms`, for groups, which other families also multiply one by one.",
    ),
    same(
        "least_long_terms_of_outputs", 1536, "terms of a sum, for each output",
        "As `least_long_terms`, if the filter is copied for vectors along channels: outputs can fill vectors.",
    ),
    same(
        "least_long_products", 30_000, "products of an image",
        "Fewer take less time than the copies of x and the filter.",
    ),
    same(
        "least_copied_long_products", 100_000, "products of an image",
        "As `least_long_products`, if every layout needs such copies.",
    ),
    same("most_long_positions", 1024, "positions of y", "With more, other families fill vectors with positions."),
    same("most_long_outputs", 16, "channels of y in a group", "With more, other families fill vectors with outputs."),
    same(
        "most_long_sums", 128, "channels and positions of y",
        "Up to this product, y may have more than `most_long_outputs` channels: a packed filter would not pay for so "
        "few sums.",
    ),
    same(
        "least_longest_terms", 16384, "terms of a sum",
        "As `least_long_terms`, if y has more than `most_long_outputs` channels.",
    ),
    same(
        "most_long_reads", 48, "products of an element of x for each output",
        "Elements that are read more often are worth a window, or an exchange of y and the filter.",
    ),
    same("most_lone_reads", 12, "products of an element of x", "As `most_long_reads`, for groups of one channel."),
    same(
        "least_long_fill", 0.75, "of the vectors",
        "With less, as many lanes would be empty as in other families.",
    ),
    same(
        "long_fill", 0.9, "of the vectors",
        "If several axes fill this part, the longest one is taken: it has the longest runs.",
    ),
    same(
        "long_slice_bytes", 128 << 10, "bytes of a task",
        "The filter of a task is read for all positions, so it should stay in the L2 cache together with their inputs.",
    ),
)  # fmt: skip
