"""Small groups (small_groups/)."""

from .number import Number, same

TABLE = (
    same(
        "lane_bytes", 512 << 10, "bytes of a task",
        "Copies of source and target should stay in an L2 cache of 1 MiB. Smaller boxes copy more halo.",
    ),
    same(
        "most_lane_bytes", 4 << 20, "bytes of a task",
        "If even the copies of one position are larger, direct computes the call.",
    ),
    same(
        "in_place_bytes", 64 << 10, "bytes of a task",
        "Bytes that a task without copies writes. Smaller tasks begin more rows, larger tasks are too few.",
    ),
    Number(
        "row_bytes", 8 << 10, 48 << 10, "bytes of a task",
        "A task in place: one row of positions, for all lanes of the task. More lanes are longer pieces of memory, but "
        "a row should stay in the L1 cache for all taps. Narrow vectors read a cache line more than once.",
    ),
    same(
        "lone_row_bytes", 2048, "bytes of a position",
        "As `row_bytes`, if no row is read twice: one position, for all lanes of a task. With fewer lanes, a task "
        "would touch a page of memory for a line or two.",
    ),
    same(
        "position_bytes", 1024, "bytes of a position",
        "One position, for all lanes of a task: in wgrad, and in copies with channels last. More lanes are longer "
        "pieces of memory, but fewer tasks.",
    ),
    same(
        "summed_copies_bytes", 512, "bytes of a position",
        "As `position_bytes`, in wgrad with copies for the spreading tile. More lanes are longer pieces of memory with "
        "channels last, and shorter ones with channels first.",
    ),
    same(
        "summed_rows_bytes", 128 << 10, "bytes of a source",
        "The rows of positions that wgrad sums for one vector of lanes before the next one, which should find its "
        "lines in the cache.",
    ),
    same(
        "spread_bytes", 256, "bytes of a position",
        "Lanes that the spreading tile takes from a position: in copies of fprop and dgrad with channels first, and in "
        "rows of wgrad. All others take `position_bytes`.",
    ),
    same(
        "spread_in_place_part", 0.25, "of the last cache",
        "Up to this size of source and target together, the spreading tile uses them in place. A copy reads larger "
        "ones, which come from memory, in the order of their addresses.",
    ),
    Number(
        "most_spread_channels", 16, 2, "channels of a group",
        "The spreading tile is used for fprop and dgrad of unit stride up to this number. With more channels, too few "
        "narrow registers are left for sums.",
    ),
    same(
        "spread_taps", 4, "taps",
        "With fewer, copies for the spreading tile take longer than products, channels first.",
    ),
    same(
        "spread_positions", 4, "positions of a row",
        "An addition to a sum waits for the previous one for the time of this number of products.",
    ),
    same(
        "most_group_channels", 4, "channels of a group",
        "Up to this number a vector for each channel pays: for the sums of wgrad, one for each pair of channels, for "
        "the copy of fprop and dgrad, and for the copy that the phases of a dgrad share.",
    ),
    same(
        "short_sum", 9, "products of a sum",
        "In direct, the extra work for each sum takes the time of this number of products. Small groups have none.",
    ),
    same(
        "short_sum_adjacent", 18, "products of a sum",
        "As `short_sum`, if positions are adjacent and direct copies rows.",
    ),
)  # fmt: skip
