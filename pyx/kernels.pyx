"""fprop, dgrad and wgrad as products of gathered matrices: fill a window, multiply, store, block by block.

Compiled once for each instruction set. A block of the result belongs to one thread from its first product to its store,
so the bits do not depend on the threads. Read correlate.pxd and wgrad.pxd for the loops, window.pxd for what they
multiply, ukernel_template.h for the multiplication. Here begins what Python calls; each function picks its types once.
"""

from libc.stdint cimport int64_t

from correlate cimport correlate_steps
from peak cimport repeat_tiles
from scalar cimport BF16, F16, F32, F64, I32, bf16, f16
from ukernel cimport TILE_ROWS, TILE_VECTORS, VECTOR_BYTES
from wgrad cimport wgrad_step
from winograd_correlate cimport correlate_tiled
from winograd_wgrad cimport wgrad_tiled

cdef extern from "threads.h" nogil:
    int threads_available()
    const char *threads_runtime()


def tile():
    """(rows of a register tile, bytes of its columns, bytes of a vector)."""
    return TILE_ROWS, TILE_VECTORS * VECTOR_BYTES, VECTOR_BYTES


def max_threads():
    """Threads that OpenMP would use now; 1 where the compiler had no OpenMP."""
    return threads_available()


def openmp():
    """Version of OpenMP's interface, or why there is none."""
    return threads_runtime().decode()


def correlate(int dtype, source, filter, target, steps, blocks):
    """target(p, o) = sum over taps t and channels c of source(p, t, c) * filter(o, t, c), for each step in turn.

    The tensors have shape (batch, group, channel, depth, height, width), the filter (group, output channel, input
    channel, depth, height, width); the target is not empty. ``steps`` and ``blocks`` are those of a Plan.
    """
    if dtype == F16:
        correlate_steps[f16, float](source, filter, target, steps, blocks, 0)
    elif dtype == BF16:
        correlate_steps[bf16, float](source, filter, target, steps, blocks, 0)
    elif dtype == F32:
        correlate_steps[float, float](source, filter, target, steps, blocks, 0)
    elif dtype == F64:
        correlate_steps[double, double](source, filter, target, steps, blocks, 0)
    elif dtype == I32:
        correlate_steps[int, int](source, filter, target, steps, blocks, 0)


def wgrad(int dtype, source, filter, target, steps, blocks):
    """filter(o, t, c) = sum over p of target(p, o) * source(p, t, c); arguments as those of ``correlate``, one step."""
    if dtype == F16:
        wgrad_step[f16, float](source, filter, target, steps, blocks, 0)
    elif dtype == BF16:
        wgrad_step[bf16, float](source, filter, target, steps, blocks, 0)
    elif dtype == F32:
        wgrad_step[float, float](source, filter, target, steps, blocks, 0)
    elif dtype == F64:
        wgrad_step[double, double](source, filter, target, steps, blocks, 0)
    elif dtype == I32:
        wgrad_step[int, int](source, filter, target, steps, blocks, 0)


def winograd_correlate(int dtype, source, filter, target, steps, blocks):
    """``correlate`` by Winograd's algorithm, with ``steps`` and ``blocks`` of a TilePlan.

    False where it has met NaN, infinity, overflow or nothing but tiny values: the result is then to be formed directly.
    """
    if dtype == F16:
        return bool(correlate_tiled[f16](source, filter, target, steps, blocks))
    if dtype == BF16:
        return bool(correlate_tiled[bf16](source, filter, target, steps, blocks))
    return bool(correlate_tiled[float](source, filter, target, steps, blocks))


def winograd_wgrad(int dtype, source, filter, target, steps, blocks):
    """``wgrad`` by Winograd's algorithm; arguments and result as those of ``winograd_correlate``."""
    if dtype == F16:
        return bool(wgrad_tiled[f16](source, filter, target, steps, blocks))
    if dtype == BF16:
        return bool(wgrad_tiled[bf16](source, filter, target, steps, blocks))
    return bool(wgrad_tiled[float](source, filter, target, steps, blocks))


def run_tiles(int dtype, int64_t depth, int64_t count, int threads):
    """``count`` full register tiles from panels in the cache, on each thread; returns how many FLOP that was.

    What a kernel can reach at most: the benchmarks time it beside the kernels.
    """
    if dtype == F64:
        return repeat_tiles(depth, count, threads, <double>0)
    if dtype == I32:
        return repeat_tiles(depth, count, threads, <int>0)
    return repeat_tiles(depth, count, threads, <float>0)
