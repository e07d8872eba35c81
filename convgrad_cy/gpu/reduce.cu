/* The partial sums of a split sum -> the tensor that they belong to.

       target[begin + i0 * strides[0] + ... + i5 * strides[5]] = partials[0][e] + partials[1][e] + ...     (in this order)
       e = ((((i0 * extents[1] + i1) * extents[2] + i2) * extents[3] + i3) * extents[4] + i4) * extents[5] + i5

   Partial sums have the compute type; the total is narrowed once. Threads next to each other read neighbours of one split.
   Where i5 runs along the target's memory they also write neighbours; where another digit does, ACROSS is 1 and a square of
   32 rows (all digits but the last) by 32 columns (the last) is turned in shared memory between reading and writing. */
#include "convgrad/problem.h"
#include "types.cuh"

#define SIDE 32

struct Arguments { /* reduce.py lists them in this order */
    int64_t splits, begin, extents[6], strides[6];
};

__device__ inline int64_t place_of(const Arguments &arguments, unsigned element)
{
    int64_t place = arguments.begin;
#pragma unroll
    for (int digit = 5; digit > 0; --digit) {
        const unsigned extent = unsigned(arguments.extents[digit]), rest = element / extent;
        place += int64_t(element - rest * extent) * arguments.strides[digit];
        element = rest;
    }
    return place + int64_t(element) * arguments.strides[0];
}

__device__ inline compute total_of(const compute *partials, unsigned elements, int splits, unsigned element)
{
    compute total = 0;
    partials += element;
#pragma unroll 8
    for (int split = 0; split < splits; ++split, partials += elements)
        total += *partials;
    return total;
}

extern "C" __global__ void
    __launch_bounds__(256) reduce(const compute *__restrict__ partials, storage *__restrict__ target,
                                  const __grid_constant__ Arguments arguments)
{
    const int splits = int(arguments.splits);
    unsigned rows = 1;
#pragma unroll
    for (int digit = 0; digit < 5; ++digit)
        rows *= unsigned(arguments.extents[digit]);
    const unsigned columns = unsigned(arguments.extents[5]), elements = rows * columns;
#if ACROSS
    __shared__ compute square[SIDE][SIDE + 1]; /* one more: neither rows nor columns meet in a bank */
    const unsigned squares_across = (columns + SIDE - 1) / SIDE, squares = (rows + SIDE - 1) / SIDE * squares_across;
    const unsigned lane = threadIdx.x % SIDE, line = threadIdx.x / SIDE, lines = blockDim.x / SIDE;
    for (unsigned number = blockIdx.x; number < squares; number += gridDim.x) {
        const unsigned row = number / squares_across * SIDE, column = number % squares_across * SIDE;
        for (unsigned i = line; i < SIDE; i += lines)
            if (row + i < rows && column + lane < columns)
                square[i][lane] = total_of(partials, elements, splits, (row + i) * columns + column + lane);
        __syncthreads();
        for (unsigned i = line; i < SIDE; i += lines)
            if (row + lane < rows && column + i < columns)
                target[place_of(arguments, (row + lane) * columns + column + i)] = narrow(storage(), square[lane][i]);
        __syncthreads();
    }
#else
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; element < elements; element += stride) {
        const compute total = total_of(partials, elements, splits, unsigned(element));
        target[place_of(arguments, unsigned(element))] = narrow(storage(), total);
    }
#endif
}
