/* Planes: the representation of numbers in mma.cu's operands. Floats become sums of bf16, other types stay as they are.
   */
#ifndef CONVGRAD_PLANES_CUH
#define CONVGRAD_PLANES_CUH

#include "types.cuh"

/* Splits a number into planes: each plane is the remainder after the previous planes, rounded to bf16. Three planes are
   exact, except for parts below 2^-133 and for float's subnormal numbers, which count as zero. If the number is not
   finite, the first plane is the number and the others are zero, because infinity minus infinity is NaN. */
template <int planes_count> __device__ inline void split(bf16 (&planes)[planes_count], float value)
{
#pragma unroll
    for (int i = 0; i < planes_count; i++) {
        planes[i] = narrow(bf16(), value);
        const float part = widen(planes[i]);
        if (part - part == 0) {
            value -= part;
        } else if (value - value == 0) { /* rounding gave infinity: truncate instead */
            planes[i].bits = (unsigned short)(bits_of_float(value) >> 16);
            value -= widen(planes[i]);
        } else {
            value = 0;
        }
    }
}

template <typename Same> __device__ inline void split(Same (&planes)[1], Same value)
{
    planes[0] = value;
}

/* A hole is a -0 where a filter has no term (spread.cu). It is zero in a product. It differs from terms that are zero,
   because spread.cu stores terms of -0 as +0. */
template <typename Half> __device__ inline bool is_hole(Half value)
{
    return value.bits == 0x8000u;
}

__device__ inline bool is_hole(double value)
{
    return value == 0 && 1 / value < 0;
}

template <typename Half> __device__ inline void make_hole(Half &value)
{
    value.bits = 0x8000u;
}

__device__ inline void make_hole(double &value)
{
    value = -0.0;
}

#endif
