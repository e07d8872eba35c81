"""fprop, dgrad and wgrad by Winograd's algorithm."""

from libc.stdint cimport int64_t

from base.scalar cimport BF16, F16, F32, bf16, f16, unknown_dtype
from winograd.correlate cimport correlate_tiled
from winograd.wgrad cimport wgrad_tiled

cdef public int correlate_winograd(
    int dtype, source, filter, target, const int64_t[:, ::1] steps, const int64_t[::1] blocks, before
) except -1:
    """``winograd_correlate`` of kernels.pyx."""
    if dtype == F16:
        return correlate_tiled[f16](source, filter, target, steps, blocks, before)
    if dtype == BF16:
        return correlate_tiled[bf16](source, filter, target, steps, blocks, before)
    if dtype == F32:
        return correlate_tiled[float](source, filter, target, steps, blocks, before)
    raise unknown_dtype(dtype, (F16, BF16, F32))


cdef public int wgrad_winograd(
    int dtype, source, filter, target, const int64_t[:, ::1] steps, const int64_t[::1] blocks, before
) except -1:
    """``winograd_wgrad`` of kernels.pyx."""
    if dtype == F16:
        return wgrad_tiled[f16](source, filter, target, steps, blocks, before)
    if dtype == BF16:
        return wgrad_tiled[bf16](source, filter, target, steps, blocks, before)
    if dtype == F32:
        return wgrad_tiled[float](source, filter, target, steps, blocks, before)
    raise unknown_dtype(dtype, (F16, BF16, F32))
