"""Small groups side by side (small_groups/)."""

from .number import Number, same

TABLE = (
    same(
        "lane_bytes", 512 << 10, "bytes of a task",
        "Copies of source and target should stay in an L2 cache of 1 MiB. Smaller boxes copy more halo.",
    ),
    same(
        "most_lane_bytes", 4 << 20, "bytes of a task",
        "Where even the copies of one position have more, direct computes the call.",
    ),
    same(
        "in_place_bytes", 64 << 10, "bytes of a task",
        "Bytes that a task without copies writes. Smaller tasks begin rows more often, larger ones are too few.",
    ),
    Number(
        "row_bytes", 8 << 10, 48 << 10, "bytes of a task",
        "What its lanes have of a row of positions then: more are longer pieces of memory, but a row should stay in "
        "the L1 cache for all taps; narrow vectors walk along a line more than once.",
    ),
    same(
        "lone_row_bytes", 2048, "bytes of a position",
        "What its lanes have where no row is seen twice: fewer would touch a page of memory for a line or two.",
    ),
    same(
        "position_bytes", 1024, "bytes of a task",
        "What its lanes have of a position in wgrad, and in copies, channels last: more are longer pieces of memory, "
        "but fewer tasks.",
    ),
    same(
        "summed_copies_bytes", 512, "bytes of a task",
        "What its lanes have of a position in wgrad where it copies for the spreading tile: channels last, more are "
        "longer pieces of memory, channels first they are shorter ones.",
    ),
    same(
        "summed_rows_bytes", 128 << 10, "bytes of a source",
        "What the rows have that wgrad sums for a vector of lanes before the next: that one should find its lines in "
        "the cache.",
    ),
    same(
        "spread_bytes", 256, "bytes of a position",
        "Lanes that the spreading tile takes from a position: in copies of fprop and dgrad with channels first, and in "
        "rows of wgrad. All others take `position_bytes`.",
    ),
    same(
        "spread_in_place_part", 0.25, "of the last cache",
        "Up to such a source and target the spreading tile reads and stores them as they are; a copy reads what is "
        "farther away in the order in which it lies.",
    ),
    Number(
        "most_spread_channels", 16, 2, "channels of a group",
        "Up to these the spreading tile has fprop and dgrad of unit stride: few narrow registers are left for sums.",
    ),
    same(
        "spread_taps", 4, "taps",
        "With fewer, copies for the spreading tile take longer than products, channels first.",
    ),
    same(
        "spread_positions", 4, "positions of a row",
        "A sum waits for its last product for the time of this many products.",
    ),
    same(
        "most_group_channels", 4, "channels of a group",
        "Up to this number a vector for each channel pays: for the sums of wgrad, one for each pair of channels, for "
        "the copy of fprop and dgrad, and for the copy that the phases of a dgrad share.",
    ),
    same(
        "short_sum", 9, "products of a sum",
        "Direct works on each sum for the time of this many products. Small groups do not.",
    ),
    same(
        "short_sum_adjacent", 18, "products of a sum",
        "As `short_sum`, if positions are adjacent and direct copies rows.",
    ),
)  # fmt: skip
