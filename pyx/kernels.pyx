"""fprop, dgrad and wgrad as products of gathered matrices: pack, multiply, store, block by block.

Compiled once for each instruction set. matrix.pxd defines the matrices, correlate.pxd and wgrad.pxd the loops. A block
of the result belongs to one thread from its first product to its store, so the bits do not depend on the threads.

                          rows of a           columns of b        depth
    correlate, NXC        positions           output channels     taps x channels
    correlate, NCX        output channels     positions           taps x channels
    wgrad, NXC            output channels     taps x channels     positions
    wgrad, NCX            taps x channels     output channels     positions

The columns are the side that is copied and multiplied in vectors, so they follow what is adjacent in memory; which that
is, the plan says. Here begins what Python calls; each function picks its types once.
"""

from libc.stdint cimport int64_t

from correlate cimport correlate_walks
from peak cimport repeat_tiles
from scalar cimport BF16, F16, F32, F64, I32, bf16, f16
from ukernel cimport TILE_ROWS, TILE_VECTORS, VECTOR_BYTES
from wgrad cimport wgrad_walk

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


def correlate(int dtype, source, filter, target, walks, blocks):
    """target(p, o) = sum over q of source(p, q) * filter(o, q), for each walk in turn.

    The tensors have shape (batch, group, channel, depth, height, width), the filter (group, output channel, input
    channel, depth, height, width); the target is not empty. ``walks`` and ``blocks`` are those of a Plan.
    """
    if dtype == F16:
        correlate_walks[f16, float](source, filter, target, walks, blocks, 0)
    elif dtype == BF16:
        correlate_walks[bf16, float](source, filter, target, walks, blocks, 0)
    elif dtype == F32:
        correlate_walks[float, float](source, filter, target, walks, blocks, 0)
    elif dtype == F64:
        correlate_walks[double, double](source, filter, target, walks, blocks, 0)
    elif dtype == I32:
        correlate_walks[int, int](source, filter, target, walks, blocks, 0)


def wgrad(int dtype, source, filter, target, walks, blocks):
    """filter(o, q) = sum over p of target(p, o) * source(p, q); arguments as those of ``correlate``, with one walk."""
    if dtype == F16:
        wgrad_walk[f16, float](source, filter, target, walks, blocks, 0)
    elif dtype == BF16:
        wgrad_walk[bf16, float](source, filter, target, walks, blocks, 0)
    elif dtype == F32:
        wgrad_walk[float, float](source, filter, target, walks, blocks, 0)
    elif dtype == F64:
        wgrad_walk[double, double](source, filter, target, walks, blocks, 0)
    elif dtype == I32:
        wgrad_walk[int, int](source, filter, target, walks, blocks, 0)


def run_tiles(int dtype, int64_t depth, int64_t count, int threads):
    """``count`` full register tiles from panels in the cache, on each thread; returns how many FLOP that was.

    What a kernel can reach at most: the benchmarks time it beside the kernels.
    """
    if dtype == F64:
        return repeat_tiles(depth, count, threads, <double>0)
    if dtype == I32:
        return repeat_tiles(depth, count, threads, <int>0)
    return repeat_tiles(depth, count, threads, <float>0)
