/* How mma.cu's operands stand for numbers of any type: as they are, or floats as sums of bf16. */
#ifndef CONVGRAD_PLANES_CUH
#define CONVGRAD_PLANES_CUH

#include "types.cuh"

/* The planes of a number, each what the planes before it leave, rounded to bf16: exact with three of them but for parts
   below 2^-133, and with float's subnormal numbers taken for zero. Where the number is not finite, the first plane is
   all of it: infinity minus infinity is no number. */
template <int planes_count> __device__ inline void split(bf16 (&planes)[planes_count], float value)
{
#pragma unroll
    for (int i = 0; i < planes_count; i++) {
        planes[i] = narrow(bf16(), value);
        const float part = widen(planes[i]);
        if (part - part == 0) {
            value -= part;
        } else if (value - value == 0) { /* rounded up to infinity: cut instead */
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

/* A hole is -0 where a filter has no term (spread.cu): zero in a product, and told from a term that is zero, for terms
   of -0 are made 0 there. */
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
