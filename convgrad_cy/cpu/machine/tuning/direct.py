"""The direct sum of the definition (direct/): boxes, blocks, and the forms of a plan."""

from .number import Number, same

TABLE = (
    # Boxes of positions (direct/boxes.py).
    same(
        "window_bytes", 256 << 10, "bytes of a task",
        "A window should stay in an L2 cache of 512 KiB, together with the sums and a strip of the other operand.",
    ),
    same(
        "box_positions", 256, "positions of a box",
        "Larger boxes copy less halo, and wgrad loads and stores the sums of a tile less often. The window grows.",
    ),
    same(
        "kept_positions_of_long_sums", 64, "positions of a box",
        "Like `few_positions`, for windows whose taps alone are a long sum: each box reads the whole filter again.",
    ),
    same("long_sum", 512, "terms of a sum", "A sum of this length is long, such as 32 x 32 taps of 3 channels."),
    same(
        "halved_part", 0.8, "of the elements of a position",
        "A row is halved if its window then has at most this part. But each half begins rows of its own.",
    ),
    same(
        "bundle_bytes", 256, "bytes of a position",
        "Groups that a task takes together, channels last. More groups are longer runs of memory, but fewer tasks.",
    ),
    same(
        "adjacent_bundle_bytes", 128, "bytes of a position",
        "As `bundle_bytes`, for fprop and dgrad with channels first and pairs of bfloat16. With more, more words are "
        "transposed at once, but less of a window stays in the L1 cache.",
    ),
    same(
        "thread_tasks", 4, "tasks of a thread",
        "Groups are bundled if this many tasks are left, so that all threads end at about one time.",
    ),
    same(
        "wanted_tasks", 16, "tasks",
        "Tasks for all threads. If the filter has fewer blocks, the boxes of wgrad are divided into slices, whose sums "
        "must be added.",
    ),
    # Sizes of a task of fprop and dgrad (direct/order.py, forms.py, plan.py).
    same(
        "sums_bytes", 192 << 10, "bytes of a task",
        "Larger boxes read the filter less often, but their sums should stay in an L2 cache of 512 KiB.",
    ),
    same(
        "depth_bytes", 4608, "bytes of taps and channels",
        "Each chunk loads and stores the sums. Larger chunks do so less often, but a strip of the filter of a chunk "
        "should stay in the L1 cache.",
    ),
    same(
        "shared_depth_bytes", 2304, "bytes of taps and channels",
        "Like `depth_bytes`, for strips that share the L1 cache: with the source if a task packs its part of the "
        "filter, and with the stored sums in wgrad.",
    ),
    same(
        "most_outputs", 512, "outputs of a block",
        "Each block reads the window again, so larger blocks are fewer reads. Each box reads the filter of its block.",
    ),
    same(
        "task_products", 2_000_000, "products of a task",
        "A task of few positions pays from this number on.",
    ),
    same(
        "least_positions", 32, "positions",
        "Fewer positions give too few products for each read of the filter. It limits boxes that become smaller to "
        "make tasks, parts into which a walk is split at padding, and rows that are halved to save halo.",
    ),
    same(
        "few_products", 16384, "products of a position",
        "Up to this number, the work for each box takes much of the time, so boxes are larger.",
    ),
    same(
        "many_positions", 1024, "positions of a box",
        "Boxes with few products for each position have up to this many.",
    ),
    same(
        "much_halo", 4, "elements of a position",
        "With more, as for 7 x 7 taps, boxes are larger: small boxes would copy most of the source several times.",
    ),
    same(
        "many_l1_caches", 2, "of the L1 cache",
        "The window of a box across positions is at most this large, because it is read for few outputs.",
    ),
    same(
        "streamed_terms", 8, "terms of a sum",
        "With fewer terms, in tiles across channels, non-temporal stores take longer than the products.",
    ),
    # wgrad.
    Number(
        "wgrad_pointwise_depth_bytes", 2304, 1536, "bytes of channels",
        "Like `shared_depth_bytes`, for wgrad of one tap: with channels last, narrow tiles read a small part of each "
        "position.",
    ),
    Number(
        "wgrad_pointwise_positions", 256, 128, "positions of a box",
        "The box of wgrad of one tap, for the reason of `wgrad_pointwise_depth_bytes`.",
    ),
    same(
        "wgrad_outputs", 128, "outputs of a block",
        "Larger blocks read the source less often, but a task holds the sums of its block.",
    ),
    same(
        "larger_positions", 512, "positions of a box",
        "Larger boxes of wgrad load and store the sums less often. In fprop and dgrad up to this size, each task packs "
        "its part of a large filter: a filter packed earlier would have left the cache.",
    ),
    same(
        "transposed_channels", 16, "channels of a source",
        "With narrow vectors and several taps, a source of at least this many channels is transposed: positions are "
        "then adjacent in a window.",
    ),
    same(
        "larger_sums_bytes", 256 << 10, "bytes of a task",
        "Sums of a task with large boxes: in wgrad, and if each task packs its part of the filter, so that it copies a "
        "window once for all its outputs.",
    ),
    same(
        "gathered_bytes", 1024, "bytes of a position",
        "For wgrad of one strided tap, channels first: blocks and chunks are this wide, because each block of outputs "
        "gathers the strided window again.",
    ),
    # Mirrored wgrad: x and y change roles (direct/mirrored.py).
    same(
        "mirrored_outputs", 4, "channels of y",
        "Up to this number, y leaves most of a vector empty, so wgrad is mirrored: the columns of the tile are "
        "channels of x. It is also the minimum ratio of the channels of x and y.",
    ),
    same(
        "mirrored_cycles", 0.9, "of the cycles",
        "With one tap, the mirrored tiles must take at most this part of the usual cycles.",
    ),
    same(
        "mirrored_padding", 1.5, "positions of x for one of y",
        "With several taps, mirrored wgrad sums over the positions of x. With more of them, too many products are "
        "padding.",
    ),
    # Tiles across positions (direct/choices.py).
    same(
        "across_cycles", 0.8, "of the cycles",
        "Tiles across positions copy the source, so they must take less than this part of the cycles across channels.",
    ),
    same(
        "across_cycles_in_place", 1.1, "of the cycles",
        "As `across_cycles`, with one tap: the source is read in place.",
    ),
    same(
        "kept_rows_cycles", 1.1, "of the cycles",
        "As `across_cycles`, if rows are stored as they lie, for any number of channels.",
    ),
    same(
        "transposing_cycles", 0.4, "cycles of an element",
        "A source of channels last has to be transposed for tiles across positions.",
    ),
    same(
        "gathering_cycles", 0.21, "cycles of an element, for each step of its stride",
        "Tiles across the positions of a strided row gather them for each tap. With a large stride, each position is "
        "in another cache line.",
    ),
    same(
        "kept_rows_channels", 4, "channels of a source",
        "Up to this number, sums are so short that transposing the result would take much of the time.",
    ),
    same(
        "joined_terms", 32, "terms of a stride phase",
        "Up to this number, transposing the sums of whole rows would take much of the time.",
    ),
    # Packing of the filter, operands read in place, and joined stride phases (direct/choices.py, direct/reads.py).
    same(
        "few_positions", 24, "positions of a box",
        "Up to this size, each task packs a filter of any size, and with several taps the cache holds the source "
        "without a window. If a window of few channels is too large, it then gets fewer channels instead of fewer "
        "positions, because smaller boxes have relatively more halo.",
    ),
    same(
        "strip_reads", 3, "tiles of a box",
        "Up to this size, a box reads the filter in place if it can. For a larger box, too little of it is still in "
        "the cache.",
    ),
    same(
        "packed_terms", 64, "terms of a sum",
        "With one tap, tasks pack the filter for sums of at least this length. With shorter sums, beginning a task "
        "takes as long as its products.",
    ),
    same("most_packed_taps", 64, "taps", "With more, tasks do not pack the filter: each would copy all taps."),
    same(
        "few_tasks", 4, "tasks",
        "If fewer tasks pack the filter, they must take about equal times, so that no thread waits.",
    ),
    same("filled_blocks", 0.75, "of the outputs of blocks", "Blocks that are at least this full count as equal."),
    same(
        "window_outputs", 128, "outputs",
        "A window pays from this number on, because it is read again for each strip of outputs.",
    ),
    same(
        "window_reads", 2, "taps for each element of a window",
        "Above this, copying a window pays, because its elements are read often for each strip.",
    ),
    same(
        "stored_phases", 8, "stride phases of a task",
        "With more, the sums of a tile's outputs leave the cache before whole rows are stored.",
    ),
    # Walks split where taps lie in padding (direct/padding.py).
    same(
        "left_products", 0.82, "of the products",
        "A dilated walk is split if at most this part is left. Each part has windows and a filter of its own.",
    ),
    same(
        "left_products_undilated", 0.5, "of the products",
        "As `left_products`, for taps near each other: a box has positions of all parts, and leaves out most padding "
        "(pyx/direct/zones.pxd).",
    ),
    same(
        "most_parts", 64, "walks",
        "Maximum parts of a walk that is split at padding: more parts take longer to begin than they save. Also the "
        "maximum stride phases that Winograd's algorithm computes in the same loops.",
    ),
    same(
        "least_reach", 0.25, "of the positions of an axis",
        "If taps reach less far, few products meet padding, and the search for them takes time.",
    ),
)  # fmt: skip
