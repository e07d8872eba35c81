"""How plans are cut for many threads (plan/cuts.py, direct/cuts.py, winograd/cuts.py)."""

from .number import same

TABLE = (
    same(
        "tuned_threads", 2, "threads",
        "The other numbers were tuned for these: plans for no more are not cut.",
    ),
    same(
        "cut_gain", 0.96, "of the time",
        "A cut has to end in at most this part of it: the model errs, and smaller tasks copy more.",
    ),
    same(
        "late_part", 0.5, "of a task",
        "By which one thread ends later than others, as no two cores are equally fast: tasks may cost some more work.",
    ),
    same(
        "cut_sizes", 9, "sizes of a box",
        "Of which each is 0.7 of the one before: more take longer to plan.",
    ),
    same(
        "least_cut_positions", 6, "positions of a box",
        "Smaller ones leave rows of a tile empty.",
    ),
    same(
        "least_cut_tiles", 4, "tiles of a box",
        "Smaller ones leave rows of a tile empty and read all filters.",
    ),
    same(
        "least_packed_bytes", 16384, "bytes of a filter",
        "Packed by one task, before those that multiply: less is sooner packed than another thread has begun.",
    ),
    same(
        "copied_cycles", 0.25, "cycles of an element",
        "Copied into a window or a panel: smaller boxes copy more of what neighbours see, too.",
    ),
    same(
        "read_cycles", 0.08, "cycles of an element",
        "Of a packed filter, which each box reads.",
    ),
    same(
        "packed_cycles", 0.5, "cycles of an element",
        "Of a filter that each task packs for itself.",
    ),
    same(
        "box_cycles", 2000, "cycles of a box",
        "Whatever its size: tables, zones, and what a task takes to begin.",
    ),
    same(
        "read_part", 0.1, "of what a transformed filter costs",
        "Each box of Winograd's tiles reads it.",
    ),
)  # fmt: skip
