"""Mistakes in the memory limit of a call, the arrays that it can read, and the algorithm that it promises."""

from mutants.schemata import mutants_of

BYTES = "test_scratch_bytes.py"

LIMIT_MUTANTS = [
    *mutants_of(
        "convgrad_cy/cpu/plan/scratch.py",
        BYTES,
        ("a limit of ten times as many bytes", "asked", "10 * asked", "None else asked"),
        ("parts of a task have the whole limit", "max(0, most - size)", "most"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/rewrites/exchanged.py",
        BYTES,
        (
            "the packed array of the exchange is not counted",
            "max(family.most_shared(*asked) for family in (direct, small_groups))",
            "0",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/plan.py",
        BYTES,
        (
            "blocks are cut for threads whatever they take",
            "shared_bytes(operation, problem, tiling, tile, blocks, extents) <= most_bytes",
            "True",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/rewrites/reached.py",
        "test_reached.py::test_winograd_by_name",
        ("taps are cut where Winograd's algorithm is asked for", 'task.algorithm == "winograd"', "False"),
    ),
    *mutants_of(
        "convgrad_cy/arrays/places.py",
        "test_places.py",
        ("undecided arrays count as apart", "True", "False", "before NumPy 1.25\n        return True"),
        (
            "axes of one element need a stride of whole elements",
            "size > 1",
            "True",
            "not any(stride % itemsize for stride, size in zip(array.strides, array.shape, strict=True) if size > 1",
        ),
    ),
    *mutants_of(
        "convgrad_cy/shims/mindspore.py",
        "test_shims_mindspore_beyond.py",
        ("MindSpore's results by any algorithm", '"direct"', '"auto"'),
    ),
    *mutants_of(
        "convgrad_cy/cli/run.py",
        "test_max_bytes.py",
        ("an array of the file may not be as large as the bound", "size > max_bytes", "size >= max_bytes"),
    ),
    *mutants_of(
        "pyx/repeat.pyx",
        "test_max_bytes.py",
        ("a result may not be as large as the bound", "size > most_bytes", "size >= most_bytes"),
    ),
]
