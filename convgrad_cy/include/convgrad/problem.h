/* The C form of convgrad_cy/problem.py. The C compiler compiles it for the CPU, NVRTC for the GPU. */
#ifndef CONVGRAD_PROBLEM_H
#define CONVGRAD_PROBLEM_H

#ifdef __CUDACC_RTC__
typedef long long int64_t;
#define CONVGRAD_FUNCTION static __host__ __device__ inline
#else
#include <stdint.h>
#define CONVGRAD_FUNCTION static inline
#endif

/* AxisWalk of problem.py, field for field. */
typedef struct {
    int64_t positions, taps;
    int64_t source_size, source_begin, source_step, source_tap;
    int64_t target_begin, target_step;
    int64_t filter_begin, filter_step;
} conv_axis;

/* The axes depth, height and width of one correlation. */
typedef struct {
    conv_axis axis[3];
} conv_walk;

CONVGRAD_FUNCTION int64_t conv_source(const conv_axis *axis, int64_t position, int64_t tap)
{
    return position * axis->source_step + tap * axis->source_tap + axis->source_begin;
}

CONVGRAD_FUNCTION int64_t conv_target(const conv_axis *axis, int64_t position)
{
    return position * axis->target_step + axis->target_begin;
}

CONVGRAD_FUNCTION int64_t conv_filter(const conv_axis *axis, int64_t tap)
{
    return tap * axis->filter_step + axis->filter_begin;
}

CONVGRAD_FUNCTION int conv_inside(const conv_axis *axis, int64_t source)
{
    return source >= 0 && source < axis->source_size;
}

#endif
