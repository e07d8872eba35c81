"""Numbers for all families: threads, caches and the register tile."""

from .number import same

TABLE = (
    # Threads (plan/sum_problem.py).
    same(
        "serial_products", 4_000_000, "products",
        "Below this many, starting a second thread costs more than it saves. Small groups use an eighth of it "
        "(small_groups/plan.py), because their time goes into reading elements rather than into products.",
    ),
    same(
        "large_filter_bytes", 1 << 20, "bytes of a group",
        "A filter as large leaves the L2 cache: a second thread helps to read it, a task packs its own part of it, and "
        "no task reads all of it for a smaller box.",
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
        "A larger operand comes from memory. (Groups of eight with a stride: 12.8 of 32 MB do not, 19 do; the target "
        "of wgrad: 14 do not, 26 do.)",
    ),
    # The register tile (register_tile.py).
    same(
        "half_tile_cycles", 2.25, "cycles of a step of depth",
        "A full tile of half a vector waits for loads.",
    ),
    same(
        "least_half_tile_cycles", 2, "cycles of a step of depth",
        "One of few rows waits for its sums.",
    ),
)  # fmt: skip
