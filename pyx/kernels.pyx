"""fprop, dgrad and wgrad as products of gathered matrices: fill a window, multiply, store, block by block.

This file has the functions that Python calls. The algorithms are in parts/, which are translated and compiled
separately and linked to this module. README.md in this folder lists all folders. The module is compiled once for each
instruction set. The number of a task determines its products and their order, so results do not depend on the threads,
bit for bit.
"""

from libc.stdint cimport int64_t

from base.memory cimport allocate, first_line, give_memory
from base.scalar cimport BF16, F16, F32, F64, I32, bf16, f16, unknown_dtype
from copy.columns cimport add_all_columns
from copy.rearrange cimport narrow_elements, rearrange_elements, widen_elements
from direct.blocks cimport Blocks, Step
from long_sums.sums cimport sum_all_long
from tile.peak cimport repeat_tiles
from tile.ukernel cimport SCALARS, TILE_ROWS, TILE_VECTORS, VECTOR_BYTES, has_pairs, way_of
from winograd.tiling cimport TileBlocks, TileStep

from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec

# The functions of the parts. Arguments: dtype, x, w, y, steps, blocks, before.
ctypedef int part_function(int, object, object, object, const int64_t[:, ::1], const int64_t[::1], object) except -1

cdef extern:
    part_function correlate_direct, wgrad_direct
    part_function correlate_small_groups, wgrad_small_groups
    part_function correlate_winograd, wgrad_winograd

cdef extern from "base/kept_memory.h" nogil:
    void release_kept_memory()

cdef extern from "parallel/threads.h" nogil:
    const char *threads_runtime()

cdef extern from "parallel/clock.h":
    ctypedef struct task_time:
        int64_t loop, task, begin, end
    ctypedef struct task_clock:
        int64_t loops, count, most, shared
        task_time *times
    int64_t exact_nanoseconds()
    void set_clock(task_clock *clock)


def tile():
    """(rows of a register tile, bytes of its columns, bytes of a vector, whether it takes pairs of bfloat16)."""
    return TILE_ROWS, TILE_VECTORS * VECTOR_BYTES, VECTOR_BYTES, bool(has_pairs())


def openmp():
    """Version of OpenMP's interface, or the reason why there is none."""
    return threads_runtime().decode()


def release_memory():
    """Free the scratch memory that a large call has kept for the next call."""
    release_kept_memory()


cdef class Program:
    """The ``steps`` and ``blocks`` of a Plan or a TilePlan, checked once for all calls with this plan.

    Each row of ``steps`` is a struct Step and ``blocks`` is a struct Blocks; in a TilePlan, TileStep and TileBlocks.
    """
    cdef const int64_t[:, ::1] steps
    cdef const int64_t[::1] blocks
    cdef bint tiled  # whether the plan is a TilePlan

    def __cinit__(self, steps, blocks):
        self.steps, self.blocks = steps, blocks
        found = (self.steps.shape[1], self.blocks.shape[0])
        plain = (sizeof(Step) // sizeof(int64_t), sizeof(Blocks) // sizeof(int64_t))
        tiled = (sizeof(TileStep) // sizeof(int64_t), sizeof(TileBlocks) // sizeof(int64_t))
        if found != plain and found != tiled:
            raise ValueError(
                f"a step and the blocks must have {plain} integers in a Plan or {tiled} in a TilePlan, had {found}"
            )
        if self.steps.shape[0] == 0:
            raise ValueError("steps must have at least one row, had none")
        self.tiled = found == tiled

    cdef int check(self, bint tiled) except -1:
        if self.tiled != tiled:
            names = "a Plan", "a TilePlan"
            raise TypeError(f"plan must be the program of {names[tiled]}, not of {names[self.tiled]}")
        return 0


def correlate(int dtype, source, filter, target, Program plan not None, before=None):
    """target(p, o) = sum over taps t and channels c of source(p, t, c) * filter(o, t, c), for each step in turn.

    Source and target have shape (batch, group, channel, depth, height, width), the filter has shape (group, output
    channel, input channel, depth, height, width). The target must not be empty. ``before`` is called after all memory
    is allocated and before anything is written. If it returns true, the target has its result already.
    """
    plan.check(tiled=False)
    if (<const Blocks *>&plan.blocks[0]).lanewise:
        correlate_small_groups(dtype, source, filter, target, plan.steps, plan.blocks, before)
    else:
        correlate_direct(dtype, source, filter, target, plan.steps, plan.blocks, before)


def wgrad(int dtype, source, filter, target, Program plan not None, before=None):
    """filter(o, t, c) = sum over p of target(p, o) * source(p, t, c). Takes the arguments of ``correlate``."""
    plan.check(tiled=False)
    if (<const Blocks *>&plan.blocks[0]).lanewise:
        wgrad_small_groups(dtype, source, filter, target, plan.steps, plan.blocks, before)
    else:
        wgrad_direct(dtype, source, filter, target, plan.steps, plan.blocks, before)


def winograd_correlate(int dtype, source, filter, target, Program plan not None, before=None):
    """``correlate`` by Winograd's algorithm, with the program of a TilePlan.

    Returns False if it has met NaN, infinity, overflow or only tiny values. The caller must then compute directly.
    """
    plan.check(tiled=True)
    return bool(correlate_winograd(dtype, source, filter, target, plan.steps, plan.blocks, before))


def winograd_wgrad(int dtype, source, filter, target, Program plan not None, before=None):
    """``wgrad`` by Winograd's algorithm. Takes the arguments of ``winograd_correlate`` and returns the same."""
    plan.check(tiled=True)
    return bool(wgrad_winograd(dtype, source, filter, target, plan.steps, plan.blocks, before))


def rearrange(source, target, int threads):
    """Copy a nonempty array of unsigned integers with seven axes to another array of the same shape."""
    if target.itemsize == 2:
        rearrange_elements[ushort](source, target, threads)
    elif target.itemsize == 4:
        rearrange_elements[uint](source, target, threads)
    elif target.itemsize == 8:
        rearrange_elements[ulonglong](source, target, threads)
    else:
        raise ValueError(f"target must have elements of 2, 4 or 8 bytes, had {target.itemsize}")


def widen(int dtype, source, target, int threads):
    """Copy an array of a 16-bit type to an array of float, as ``rearrange`` does."""
    if dtype == F16:
        widen_elements[f16](source, target, threads)
    elif dtype == BF16:
        widen_elements[bf16](source, target, threads)
    else:
        raise unknown_dtype(dtype, (F16, BF16))


def narrow(int dtype, source, target, int threads):
    """Copy an array of float to an array of a 16-bit type, as ``rearrange`` does."""
    if dtype == F16:
        narrow_elements[f16](source, target, threads)
    elif dtype == BF16:
        narrow_elements[bf16](source, target, threads)
    else:
        raise unknown_dtype(dtype, (F16, BF16))


def add_columns(int dtype, columns, target, axes, int64_t block, bint channels_last, int threads, before=None):
    """col2im: add the columns of all positions into a target, which must not be empty (copy/columns.pxd)."""
    if dtype == F32:
        add_all_columns[float](columns, target, axes, block, channels_last, threads, before)
    elif dtype == F64:
        add_all_columns[double](columns, target, axes, block, channels_last, threads, before)
    elif dtype == I32:
        add_all_columns[int](columns, target, axes, block, channels_last, threads, before)
    else:
        raise unknown_dtype(dtype, (F32, F64, I32))


def sum_long(int dtype, source, filter, target, plan, before=None):
    """``correlate`` for long sums (long_sums/sums.pxd). ``plan`` has the walk of fprop and the blocks, both int64.

    In source and filter, elements must be adjacent along the last axis of a sum.
    """
    cdef const int64_t[:, ::1] walk
    cdef const int64_t[::1] blocks
    walk, blocks = plan
    if dtype == F32:
        sum_all_long[float](source, filter, target, walk, blocks, before)
    elif dtype == F64:
        sum_all_long[double](source, filter, target, walk, blocks, before)
    elif dtype == I32:
        sum_all_long[int](source, filter, target, walk, blocks, before)
    else:
        raise unknown_dtype(dtype, (F32, F64, I32))


def run_tiles(int dtype, int64_t depth, int64_t count, int threads, int64_t pairs=0):
    """Compute ``count`` full tiles on each thread, from panels in the cache. Returns the number of FLOP.

    No kernel can be faster, so the benchmarks compare kernels with this peak. ``pairs``: as in ``Blocks``, for
    bfloat16.
    """
    if dtype == F64:
        return repeat_tiles(SCALARS, depth, count, threads, <double>0)
    if dtype == I32:
        return repeat_tiles(SCALARS, depth, count, threads, <int>0)
    if dtype == F16 or dtype == BF16 or dtype == F32:
        return repeat_tiles(way_of(pairs) if dtype == BF16 else SCALARS, depth, count, threads, <float>0)
    raise unknown_dtype(dtype, (F16, BF16, F32, F64, I32))


def time_tasks(call, int64_t most):
    """Time the tasks of ``call()`` on one thread. Nothing else may compute in this process meanwhile.

    Returns the call's nanoseconds, the bytes that its tasks share, and (loop, task, begin, end) of each task, in
    nanoseconds from the call's begin. The call may have at most ``most`` tasks.
    """
    cdef task_clock clock
    cdef int64_t i, begin, end
    cdef void *memory = allocate(most * sizeof(task_time), 0, 0)
    clock.loops = clock.count = clock.shared = 0
    clock.most, clock.times = most, <task_time *>first_line(memory)
    try:
        set_clock(&clock)
        begin = exact_nanoseconds()
        call()
        end = exact_nanoseconds()
        set_clock(NULL)
        if clock.count > most:
            raise ValueError(f"most must be at least {clock.count}, the call's tasks, was {most}")
        times = [
            (clock.times[i].loop, clock.times[i].task, clock.times[i].begin - begin, clock.times[i].end - begin)
            for i in range(clock.count)
        ]
        return end - begin, clock.shared, times
    finally:
        set_clock(NULL)
        give_memory(memory, 0)


cdef object load_part(name):
    """Import a part from this module's file. Cython creates a module's constants when it is imported."""
    name = f"{__name__}.{name}"
    loader = ExtensionFileLoader(name, __file__)
    module = module_from_spec(ModuleSpec(name, loader, origin=__file__))
    loader.exec_module(module)
    return module


cdef list parts = [load_part(name) for name in ("_direct_correlate", "_direct_wgrad", "_small_groups", "_winograd")]
