"""Numbers for all families: threads, caches and the register tile."""

from .number import same

TABLE = (
    # Threads (plan/threads.py).
    same(
        "serial_products", 4_000_000, "products",
        "With fewer, and with fewer than `serial_bytes`, starting a second thread costs more than it saves. Small "
        "groups use an eighth of this number (small_groups/plan.py), because reading elements takes most of their "
        "time.",
    ),
    same(
        "serial_bytes", 1 << 19, "bytes of all arrays",
        "Reading and writing this many bytes takes one thread about as long as `serial_products`.",
    ),
    same(
        "large_filter_bytes", 1 << 20, "bytes of a group",
        "A filter of this size does not fit in the L2 cache. So each task packs its part of it, and tasks do not read "
        "all of it for smaller boxes.",
    ),
    # Taps that meet padding alone (rewrites/reached.py).
    same(
        "most_reached_taps", 0.5, "of the taps",
        "At most this part must be left for the filter to be cut: the taps of a cut filter are not adjacent in memory, "
        "and some families read the filter in place.",
    ),
    # The last cache, whose size is read (caches.py).
    same(
        "streamed_part", 0.75, "of the L3 cache",
        "A larger target would evict operands that are still to be read, so stores are non-temporal. A smaller one is "
        "faster with normal stores.",
    ),
    same(
        "fetched_part", 0.6, "of the L3 cache",
        "With a larger source and target, the inputs of a row are prefetched some positions ahead.",
    ),
    same(
        "fetched_row_part", 1.25, "of the L3 cache",
        "A still larger source and target come from memory, so inputs are prefetched a row ahead.",
    ),
    same(
        "far_part", 0.5, "of the L3 cache",
        "A larger operand is read from memory. (With a cache of 32 MB: in groups of eight with a stride, 12.8 MB are "
        "not, and 19 MB are; the target of wgrad: 14 MB are not, and 26 MB are.)",
    ),
    # The register tile (register_tile.py).
    same(
        "half_tile_cycles", 2.25, "cycles of a step of depth",
        "The time of a full tile of half a vector, which waits for loads.",
    ),
    same(
        "least_half_tile_cycles", 2, "cycles of a step of depth",
        "The time of such a tile with few rows, which waits for its sums.",
    ),
)  # fmt: skip
