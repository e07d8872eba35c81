"""Calls of a case with each allocation failing in turn. Prints JSON.

``python fail_allocations.py memory CASE FUNCTION...``: memory of the kernels, and arrays of NumPy.
``python fail_allocations.py objects CASE FUNCTION...``: Python's objects.

For each source of memory and n = 1, 2, 3, ..., the n-th allocation fails, alone or with the following ones, until a
call meets no failure. A call that meets one raises MemoryError and leaves its results' memory untouched, or it
computes the usual result: Python does not need all of the memory that it asks for.
"""

import gc
import json
import os
import sys
from importlib import import_module

import numpy as np
from allocations import KERNELS, NAMES, NUMPY, PYTHON, arm, bytes_held, disarm, watch
from kernel_calls import CASES
from operations import PAIRS
from watched import Note

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.dtypes import lookup

SENTINEL = 0xA5
THREADS = 2
#: Numbers of failures in a row. Python has no more: without any memory it ends the process ("Cannot recover from
#: MemoryErrors while normalizing exceptions").
ROWS = {KERNELS: (1, 1 << 40), NUMPY: (1, 1 << 40), PYTHON: (1, 5)}
#: A first call, which is planned, has thousands of allocations by Python. Only the first WHOLE all fail in turn.
WHOLE = 40
#: Messages of NumPy instead of MemoryError if it finds no memory for an object while a call is planned.
OF_NUMPY = (
    "invalid field name",
    "error return without exception set",
    "<ufunc 'equal'> returned NULL without setting an exception",
)
#: Rounds in which the same allocations fail: lost memory is lost in each of them. (Not for Python: it loses arguments
#: itself if it finds no memory for a frame.) This program itself keeps less than MOST_BLOCKS of Python's blocks.
ROUNDS, MOST_BLOCKS = 3, 100

note = Note()
figures = {"calls": 0, "failed allocations": 0, "MemoryError": 0}
wrong = []


def forget():
    """Let the next call be checked and planned as the first of its kind."""
    calls.forget()
    for name, module in list(sys.modules.items()):
        if name.startswith("convgrad_cy"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def as_bytes(arrays):
    return [array.tobytes() for array in ([arrays] if isinstance(arrays, np.ndarray) else arrays)]


def attempt(call, outs, source, n, row):
    """One call in which ``row`` allocations fail, from the n-th on: the number of failures, and results or error."""
    arm(source, n, row)
    try:
        result = call.bare(outs)
    except BaseException as error:
        failed, result = disarm(), error.with_traceback(None)
    else:
        failed = disarm()
    return failed, result


def attempt_with_more_threads(*arguments):
    """``attempt`` with a team that has to grow."""
    with cg.num_threads(THREADS + 1):
        return attempt(*arguments)


def says_of_which(call, text):
    """Whether an error names the function, and the shape and dtype of its result, or of one of both gradients."""
    names = (f"{call.name}_data", f"{call.name}_filter") if call.name in PAIRS else (call.name,)
    dtype = lookup(call.dtype).name
    return any(
        text.startswith(f"{name} needs more memory than there is for a result of shape {shape} and dtype {dtype}")
        for name, shape in zip(names, call.shapes, strict=True)
    )


def complaint(call, source, result, outs, expected):
    """The fault in the outcome, or None."""
    if bytes_held(KERNELS):
        return f"the kernels still hold {bytes_held(KERNELS)} bytes"
    if not isinstance(result, BaseException):
        return None if as_bytes(result) == expected else "another result"
    if not isinstance(result, MemoryError) and not (source == PYTHON and str(result) in OF_NUMPY):
        return f"{type(result).__name__}: {result}"
    if source != PYTHON and not says_of_which(call, str(result)):
        return f"it does not name the call: {result}"
    touched = sum(out.nbytes - out.tobytes().count(SENTINEL) for out in outs or ())
    if touched and source == PYTHON and call.name in PAIRS and as_bytes(outs) == expected:
        return None  # both results are complete; only the pair found no memory
    return f"{touched} bytes of out touched" if touched else None


def turns(whole):
    """1, 2, 3, ..., or numbers further and further apart."""
    n = 1
    while True:
        yield n
        n += 1 if whole or n < WHOLE else n // 10


def fail_each(call, source, given=True, fresh=False):
    """Let the n-th allocation fail, for n = 1, 2, 3, ..., until a call meets no failure."""
    expected, inputs = as_bytes(call.run()), as_bytes(call.inputs)
    for row in ROWS[source]:
        for n in turns(not (fresh and source == PYTHON)):
            what = f"{call.name}, {'out' if given else 'no out'}, {'first' if fresh else 'later'} call, "
            what += f"allocation {n}{' and later' if row > 1 else ''} of {NAMES[source]}"
            note(what)
            if fresh:
                forget()
            outs = call.outs(SENTINEL) if given else None
            failed, result = (attempt_with_more_threads if fresh else attempt)(call, outs, source, n, row)
            figures["calls"] += 1
            figures["failed allocations"] += failed
            figures["MemoryError"] += isinstance(result, MemoryError)
            said = complaint(call, source, result, outs, expected)
            if as_bytes(call.inputs) != inputs:
                said = f"{said}; inputs changed"
            if said is None and as_bytes(call.run(outs)) != expected:
                said = "the next call is wrong"
            if said is not None:
                wrong.append(f"{what}: {said}")
            if not failed:
                break


def threads():
    return len(os.listdir("/proc/self/task"))


def fail_memory(calls):
    """Let memory of the kernels and of NumPy fail. Nothing may be lost."""
    held, blocks = [], []
    for _ in range(ROUNDS):
        for call in calls:
            for source in (KERNELS, NUMPY):
                fail_each(call, source)
        forget()
        gc.collect()
        held.append(bytes_held(NUMPY))
        blocks.append(sys.getallocatedblocks())
    if not wrong and (held[-1] > held[0] or blocks[-1] > blocks[0] + MOST_BLOCKS):
        wrong.append(f"lost: NumPy holds {held} bytes after each round, Python {blocks} blocks")
    for call in calls:
        for source in (KERNELS, NUMPY):
            fail_each(call, source, fresh=True)
            fail_each(call, source, given=False)


def fail_objects(calls):
    for call in calls:
        fail_each(call, PYTHON)
        fail_each(call, PYTHON, fresh=True)


def main(kind, name, *functions):
    for module in ("numpy.lib.stride_tricks", "concurrent.futures"):
        import_module(module)
    chosen = [call for call in CASES[name].calls().values() if call.name in functions]
    watch()
    gc.disable()  # a collection asks for memory, too, at another place in each call
    with cg.num_threads(THREADS):
        for call in chosen:
            attempt_with_more_threads(call, None, KERNELS, 0, 0)
        before = threads()
        {"memory": fail_memory, "objects": fail_objects}[kind](chosen)
        if threads() > before:
            wrong.append(f"{threads() - before} threads more than before")
    print(json.dumps({"figures": figures, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
