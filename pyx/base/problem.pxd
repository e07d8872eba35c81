"""Cython's view of convgrad_cy/include/convgrad/problem.h."""

from libc.stdint cimport int64_t

cdef extern from "convgrad/problem.h" nogil:
    ctypedef struct conv_axis:
        int64_t positions, taps
        int64_t source_size, source_begin, source_step, source_tap
        int64_t target_begin, target_step
        int64_t filter_begin, filter_step
    ctypedef struct conv_walk:
        conv_axis axis[3]
    int64_t conv_source(const conv_axis *axis, int64_t position, int64_t tap)
    int64_t conv_target(const conv_axis *axis, int64_t position)
    int64_t conv_filter(const conv_axis *axis, int64_t tap)
    bint conv_inside(const conv_axis *axis, int64_t source)
