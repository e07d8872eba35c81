"""Calls on arrays next to pages that cannot be touched: ``python touch_guards.py DTYPE EVERY FIRST``. Prints JSON.

Every EVERY-th problem is taken, from FIRST on. A stray access is a SIGSEGV of this process, whose note names the call.
If allocations.c is preloaded, the kernels' memory ends before such a page, too. ``stray`` instead of a dtype reads one
byte beyond an array, ``stray_scratch`` one byte beyond memory like a kernel's.
"""

import ctypes
import json
import sys
from itertools import product

import numpy as np
from guarded import Memory
from layouts import every_second, fortran, negative
from operations import OPERATIONS, integer_tensors, to_formats
from problems import PROBLEMS, parse
from watched import Note

import convgrad_cy as cg

#: Problems in addition to the suite's small ones: they reach wide tiles, bundles of groups, patches, and slices.
LARGER = [
    parse(text)
    for text in (
        'mb2ic37ih13iw17oc43kh3ph1n"tiles"',
        'mb1ic21ih12iw19oc35kh5ph2n"tiles_5x5"',
        'mb2ic19ih15oc37kh3sh2ph1n"tiles_stride2"',
        'mb1g5ic40ih13oc40kh3ph1n"groups_of_eight"',
        'mb1ic3ih96oc512oh24kh4sh4n"patches"',
        'mb2ic1iw4128oc200ow64kw160sw64pw32n"overlaps"',
        'mb3g6ic18ih14oc12oh2kh13n"exchanged"',
        'mb2g8ic16ih5oc24oh6kh12ph6n"reversed"',
        'mb1ic17id7ih9iw11oc19kd3pd1n"volume"',
        'mb1ic67ih11iw13oc131kh1n"pointwise"',
        'mb3ic2iw1511oc3kw9pw4n"row"',
    )
]
#: (data format, filter format, layout of each array)
LAYOUTS = [
    ("NCX", "OIX", np.ascontiguousarray),
    ("NXC", "XIO", np.ascontiguousarray),
    ("NCX", "XIO", negative),
    ("NXC", "OIX", every_second),
    ("NCX", "OIX", fortran),
]
#: Functions that are called without the result's shape.
WITHOUT_SHAPE = ("conv", "conv_transpose", "conv_transpose_backward_data")
#: Winograd's error relative to the greatest element, and half a unit of the type in which the result is stored.
TOLERANCE = {"float32": 2e-5, "float16": 2e-5 + 2**-11, "bfloat16": 2e-5 + 2**-8}
MEMORY = 64 << 20

note = Note()


def algorithms(dtype):
    """The direct algorithm; for bfloat16 also pairs, or Winograd's if there are none; and Winograd's, if it exists."""
    return ("direct", *(("auto",) if dtype == "bfloat16" else ()), *(("winograd",) if dtype in TOLERANCE else ()))


def check(result, expected, dtype, algorithm):
    """Whether a result equals the definition."""
    result = result.astype(np.int64 if dtype == "int32" else np.float64)
    if algorithm == "direct" or dtype not in TOLERANCE:
        return bool((result == expected).all())
    return abs(result - expected).max() <= TOLERANCE[dtype] * abs(expected).max()


def guard_scratch():
    """Guard the kernels' memory if allocations.c is preloaded, and return whether it is."""
    if not hasattr(ctypes.CDLL(None), "guard_kernels"):
        return False
    import allocations

    allocations.watch()
    allocations.guard_kernels()
    return True


def calls(dtype, problem):
    """(description of a call, its arguments without ``out``, an array like its result, the required result)."""
    tensors, results = integer_tensors(problem, dtype)
    for (name, operation), (*formats, layout) in product(OPERATIONS.items(), LAYOUTS):
        inputs = [layout(to_formats(part, getattr(tensors, part), *formats)) for part in operation.reads]
        expected = to_formats(operation.makes, results[operation.kernel], *formats)
        made = layout(np.zeros(expected.shape, inputs[0].dtype))
        keywords = problem.keywords | dict(zip(("data_format", "filter_format"), formats, strict=True))
        if name == "conv_transpose":
            keywords["output_shape"] = expected.shape
        more = () if name in WITHOUT_SHAPE else (expected.shape,)
        for algorithm in algorithms(dtype):
            what = f"{name} {dtype} {algorithm} {problem} {formats} {layout.__name__}"
            yield what, (name, inputs, more, keywords | {"algorithm": algorithm}), made, expected


def is_possible(name, inputs, more, keywords):
    """Whether such a call exists: Winograd's algorithm lacks some."""
    try:
        getattr(cg, name)(*inputs, *more, **keywords)
    except ValueError as error:
        if keywords["algorithm"] != "winograd" or "winograd" not in str(error):
            raise
        return False
    return True


def main(dtype, every, first):
    has_guarded_scratch = guard_scratch()
    memories = [Memory(MEMORY) for _ in range(3)]
    problems = [problem for problem in [*PROBLEMS.values(), *LARGER] if problem.batch][first::every]
    count, wrong = 0, []
    for problem in problems:
        for what, (name, plain, more, keywords), made, expected in calls(dtype, problem):
            note(f"{what}, unguarded")
            if not is_possible(name, plain, more, keywords):
                continue
            for at_end in (False, True):
                note(f"{what} at the {'end' if at_end else 'beginning'}")
                arrays = zip(memories, [*plain, made], strict=True)
                *inputs, out = [memory.like(array, at_end) for memory, array in arrays]
                getattr(cg, name)(*inputs, *more, out=out, **keywords)
                count += 1
                if not check(out, expected, dtype, keywords["algorithm"]):
                    wrong.append(f"{what}: another result")
                if not memories[2].is_clean_around(out):
                    wrong.append(f"{what}: memory outside of out is written")
    figures = {
        "calls": count,
        "guarded arrays": 3 * count,
        "calls with guarded scratch memory": has_guarded_scratch * count,
    }
    print(json.dumps({"figures": figures, "wrong": wrong}))


def stray_scratch():
    """Read as if this were a kernel."""
    library = ctypes.CDLL(None)
    library.watch_range.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    note("a stray read of scratch memory")
    library.watch_range(0, 2**64 - 1, 0)
    library.guard_kernels()
    ctypes.string_at(library.malloc(160) + 160, 1)


def stray():
    memory = Memory(1000)
    array = memory.like(np.zeros(5, np.float32), True)
    note("a stray read")
    ctypes.string_at(array.ctypes.data + array.nbytes, 1)


if __name__ == "__main__":
    if sys.argv[1] in ("stray", "stray_scratch"):
        {"stray": stray, "stray_scratch": stray_scratch}[sys.argv[1]]()
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
