"""Winograd's algorithm: sizes of its blocks (winograd/plan.py), and limits of its choice (winograd/tilings.py)."""

from .number import Number, same

TABLE = (
    # A task of fprop and dgrad.
    same(
        "tile_values_bytes", 448 << 10, "bytes of a task",
        "Transformed tiles of a chunk should stay in the L2 cache together with a part of the sums. Longer chunks load "
        "the sums less often.",
    ),
    Number(
        "tile_sums_bytes", 1300 << 10, 1040 << 10, "bytes of a task",
        "Sums of a task. More tiles read filters less often. The sums of all points do not fit in an L2 cache of 1 "
        "MiB, but the sums of one point do, and the points are processed one by one.",
    ),
    same(
        "tile_sums_bytes_of_many_points", 1040 << 10, "bytes of a task",
        "As `tile_sums_bytes`, with more than `few_points`: wide vectors gain nothing from more tiles.",
    ),
    same(
        "few_points", 64, "points of a tile",
        "With more, a task has fewer outputs, and does not transform filters itself.",
    ),
    same(
        "box_tiles", 42, "tiles of a box",
        "Larger boxes read filters less often, but leave less of the L2 cache to channels.",
    ),
    same(
        "row_tiles", 16, "tiles of a row",
        "A row of tiles should stay in the L1 cache while it is transformed.",
    ),
    same(
        "tile_outputs", 256, "outputs of a block",
        "Larger blocks transform the source less often, but leave room for fewer tiles.",
    ),
    same("tile_outputs_of_many_points", 64, "outputs of a block", "As `tile_outputs`, with more than `few_points`."),
    same(
        "tile_channels", 128, "channels of a chunk",
        "Larger chunks load the sums less often, but a strip of the filter should stay in the L1 cache. In wgrad it "
        "limits channels and outputs of a block; the number of sums is their product.",
    ),
    same(
        "span_bytes", 4 << 20, "bytes of a task",
        "Tiles of this size are transformed before they are multiplied: the sums of a point then stay in the cache "
        "while their products are added, though tiles come from the L3 cache.",
    ),
    same(
        "kept_bytes", 24 << 20, "bytes",
        "Up to this size, transformed tiles are kept for all blocks, and transformed filters for all tasks. Larger "
        "ones leave the L3 cache, and a second transform is faster.",
    ),
    same(
        "kept_tiles_bytes_of_two", 8 << 20, "bytes",
        "As `kept_bytes`, for two blocks: without kept tiles, they are transformed only once more.",
    ),
    # Transforms of the filter: by each task, or once for all tasks.
    same(
        "small_filter_bytes", 3 << 20, "bytes transformed",
        "A larger filter goes through memory only for many tiles; for fewer, each task transforms its own part of it.",
    ),
    same(
        "filter_strips", 4, "strips of outputs",
        "Maximum strips of a task that transforms filters.",
    ),
    same(
        "filter_channels", 32, "channels of a task",
        "A task that transforms filters has these channels: 64 outputs are one strip, so channels make tasks.",
    ),
    same(
        "least_filter_channels", 8, "channels of a task",
        "As `filter_channels`, if there would be fewer than `wanted_tile_tasks`.",
    ),
    same(
        "many_tiles", 256, "tiles",
        "A filter that goes through memory pays from this number on.",
    ),
    Number(
        "own_filter_sums", 8192, 4096, "sums of a point",
        "A task that transforms its part of the filter has more tiles, up to this number, to transform it less often.",
    ),
    same(
        "own_filter_outputs", 32, "outputs of a block",
        "A task that transforms its own part: its filters stay in the cache, and there are enough tasks.",
    ),
    same("own_filter_channels", 64, "channels of a chunk", "As `own_filter_outputs`, for channels."),
    Number(
        "own_filter_more_channels", 128, 64, "channels of a chunk",
        "As `own_filter_channels`, if the filters take at most `own_filter_bytes`: sums are loaded less often.",
    ),
    same(
        "own_filter_bytes", 832 << 10, "bytes of a task",
        "The filters of a chunk of a task should stay in an L2 cache of 1 MiB.",
    ),
    # Tasks.
    same(
        "wanted_tile_tasks", 8, "tasks",
        "Where there are fewer, blocks of outputs are halved, and boxes of wgrad are cut into slices: threads get "
        "equal parts, but sources are transformed again and slices added.",
    ),
    same(
        "wanted_tile_tasks_unsliced", 24, "tasks",
        "As `wanted_tile_tasks`, for wgrad of one slice with kept tiles: more blocks cost little.",
    ),
    # wgrad.
    same(
        "full_box_tiles", 56, "tiles of a box",
        "For wgrad, and for tasks of several groups, whose filters are small. More load the sums less often, but their "
        "values should stay in the L2 cache.",
    ),
    same(
        "wgrad_tile_sums_bytes", 2400 << 10, "bytes of a task",
        "Sums of a block of the filter: larger blocks transform both operands less often, but each box loads and "
        "stores all of them.",
    ),
    same(
        "wgrad_least_tile_outputs", 64, "outputs of a block",
        "Smaller blocks are not halved to make tasks: each transforms the source again.",
    ),
    same(
        "sharing_blocks", 16, "blocks of the filter of a group",
        "From this number on, the tiles of both operands are kept: each is needed for a row or column of blocks.",
    ),
    Number(
        "sharing_blocks_of_walks", 1, 16, "blocks of the filter of a group",
        "As `sharing_blocks`, if several walks share the tiles of the target, as with a stride. Wide vectors multiply "
        "faster than they transform, so any number pays.",
    ),
    # Groups.
    same(
        "bundled_outputs", 8, "outputs of a group",
        "Groups of this number of outputs, a vector of 32 bytes, are bundled: one group fills only a part of a cache "
        "line.",
    ),
    same(
        "bundled_channels", 16, "channels of a task",
        "A task takes groups with up to this number of channels together: a cache line, or in fprop and dgrad up to "
        "two vectors.",
    ),
    # Whether it is chosen.
    same(
        "least_tiled_products", 2_000_000, "products",
        "With fewer, the fixed time of a call matters, and this algorithm has more steps.",
    ),
    same(
        "least_wgrad_tiles", 16, "tiles of a box of wgrad",
        "With fewer, the transform of the sums takes all the time that is saved, and the model errs.",
    ),
    same(
        "full_saving", 1.8, "products for one",
        "With less, as with two taps or with seven on one axis, the model must predict a larger gain.",
    ),
    same("least_saving", 1.5, "products for one", "With less, too few products are saved to pay for transforms."),
    # The order of its arrays (winograd/layout.py).
    same(
        "most_filter_reads", 4, "reads of a filter",
        "A filter with adjacent taps is read in place up to this often. Reordering it is faster than more reads.",
    ),
)  # fmt: skip
