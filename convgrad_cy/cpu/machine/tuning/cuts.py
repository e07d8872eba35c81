"""How plans are cut for many threads (plan/cuts.py, direct/cuts.py, winograd/cuts.py)."""

from .number import same

TABLE = (
    same(
        "tuned_threads", 2, "threads",
        "The other numbers were tuned with this number of threads. Plans are cut only for more threads.",
    ),
    same(
        "cut_gain", 0.96, "of the time",
        "A cut must take at most this part of the uncut time, because the model errs, and smaller tasks copy more.",
    ),
    same(
        "late_part", 0.5, "of a task",
        "One thread may end later than the others by this part, because no two cores are equally fast.",
    ),
    same(
        "cut_sizes", 9, "sizes of a box",
        "Each size is 0.7 times the previous one. More sizes take longer to plan.",
    ),
    same(
        "least_cut_positions", 6, "positions of a box",
        "Smaller boxes leave rows of a tile empty.",
    ),
    same(
        "least_cut_tiles", 4, "tiles of a box",
        "Smaller boxes leave rows of a tile empty and read all filters.",
    ),
    same(
        "least_packed_bytes", 16384, "bytes of a filter",
        "A smaller filter is packed by one task, which ends before a second thread has begun.",
    ),
    same(
        "copied_cycles", 0.25, "cycles of an element",
        "The copy into a window or a panel. Smaller boxes copy more halo.",
    ),
    same(
        "read_cycles", 0.08, "cycles of an element",
        "Each box reads the packed filter.",
    ),
    same(
        "packed_cycles", 0.5, "cycles of an element",
        "Each task packs the filter for itself.",
    ),
    same(
        "box_cycles", 2000, "cycles of a box",
        "The cost of any box: tables, zones, and the start of a task.",
    ),
    same(
        "read_part", 0.1, "of the cost of a transformed filter",
        "Each box of Winograd's tiles reads it.",
    ),
)  # fmt: skip
