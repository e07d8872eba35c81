"""fprop and dgrad by the direct sum of the definition."""

from libc.stdint cimport int64_t

from base.scalar cimport BF16, F16, F32, F64, I32, bf16, compute, f16, scalar, unknown_dtype
from direct.correlate cimport correlate_steps

cdef int correlate_arrays(
    source, filter, target, const int64_t[:, ::1] steps, const int64_t[::1] blocks, before, scalar *storage,
    compute kind,
) except -1:
    """Direct fprop or dgrad for one pair of types.

    One function per pair, because Cython releases every memoryview variable of a function on each call.
    """
    cdef const scalar[:, :, :, :, :, :] x = source, w = filter
    cdef scalar[:, :, :, :, :, :] y = target
    return correlate_steps(x, w, y, steps, blocks, before, kind)


cdef public int correlate_direct(
    int dtype, source, filter, target, const int64_t[:, ::1] steps, const int64_t[::1] blocks, before
) except -1:
    """``correlate`` of kernels.pyx."""
    if dtype == F16:
        return correlate_arrays(source, filter, target, steps, blocks, before, <f16 *>NULL, <float>0)
    if dtype == BF16:
        return correlate_arrays(source, filter, target, steps, blocks, before, <bf16 *>NULL, <float>0)
    if dtype == F32:
        return correlate_arrays(source, filter, target, steps, blocks, before, <float *>NULL, <float>0)
    if dtype == F64:
        return correlate_arrays(source, filter, target, steps, blocks, before, <double *>NULL, <double>0)
    if dtype == I32:
        return correlate_arrays(source, filter, target, steps, blocks, before, <int *>NULL, <int>0)
    raise unknown_dtype(dtype, (F16, BF16, F32, F64, I32))
