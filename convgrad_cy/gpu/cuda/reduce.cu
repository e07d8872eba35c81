/* The partial sums of a split sum -> the tensor that they belong to.

       target[begin + i0 * strides[0] + ... + i5 * strides[5]] = total[e]
       e = ((((i0 * extents[1] + i1) * extents[2] + i2) * extents[3] + i3) * extents[4] + i4) * extents[5] + i5

   `lanes`, a power of two, share the splits of an element. Both sums are formed in this order:

       share[lane][e] = partials[lane][e] + partials[lane + lanes][e] + partials[lane + 2 * lanes][e] + ...
       total[e] = share[0][e] + share[1][e] + ... + share[lanes - 1][e]

   They have the compute type; the total is narrowed once.

   A block has LINES lines of WIDTH threads, and a patch of LINES / lanes rows of WIDTH elements: each line is one lane of a
   row, and threads next to each other read neighbours of one split. Elements lie in rows of WIDTH, and neighbours are
   written by neighbours, where i5 runs along the target's memory. Where another digit does, `across` is 1 and elements
   lie in rows of extents[5]: neighbours in a column of the patch are written by neighbours. */
#include "convgrad/problem.h"
#include "types.cuh"

#define WIDTH 32
#define LINES 8
#define THREADS (WIDTH * LINES)
#define ROUND 8           /* loads of a thread that are on their way at once */
#define PITCH (WIDTH + 4) /* the shares that a warp adds, of 4 bytes, lie in different banks, in rows and in columns */

struct Arguments { /* reduce.py lists them in this order */
    int64_t splits, lanes, across, begin, extents[6], strides[6];
};

__device__ inline int64_t place_of(const Arguments &arguments, unsigned element, unsigned elements)
{
    int64_t place = arguments.begin;
    if (unsigned(arguments.extents[5]) == elements)
        return place + int64_t(element) * arguments.strides[5]; /* without a division */
#pragma unroll
    for (int digit = 5; digit > 0; --digit) {
        const unsigned extent = unsigned(arguments.extents[digit]), rest = element / extent;
        place += int64_t(element - rest * extent) * arguments.strides[digit];
        element = rest;
    }
    return place + int64_t(element) * arguments.strides[0];
}

/* The sum of so many partial sums that are `step` apart. The loads of a round do not wait for one another. */
__device__ inline compute sum_of(const compute *partials, int count, int64_t step)
{
    compute sum = 0;
#pragma unroll 1
    for (; count > 0; count -= ROUND) {
        compute round[ROUND];
#pragma unroll
        for (int i = 0; i < ROUND; ++i, partials += step)
            round[i] = i < count ? *partials : compute(0);
#pragma unroll
        for (int i = 0; i < ROUND; ++i)
            sum += round[i];
    }
    return sum;
}

extern "C" __global__ void
__launch_bounds__(THREADS) reduce(const compute *__restrict__ partials, storage *__restrict__ target,
                                  const __grid_constant__ Arguments arguments)
{
    __shared__ compute shares[LINES][PITCH];
    const unsigned splits = unsigned(arguments.splits), lanes = unsigned(arguments.lanes), rows = LINES / lanes;
    const bool across = arguments.across;
    unsigned elements = 1;
#pragma unroll
    for (int digit = 0; digit < 6; ++digit)
        elements *= unsigned(arguments.extents[digit]);
    const unsigned columns = across ? unsigned(arguments.extents[5]) : WIDTH;
    const unsigned patches_across = (columns + WIDTH - 1) / WIDTH;
    const unsigned first_row = blockIdx.x / patches_across * rows, first_column = blockIdx.x % patches_across * WIDTH;
    /* The element at a place of the patch, or a number beyond all of them. */
    const auto element_at = [&](unsigned row, unsigned column) {
        column += first_column;
        return column < columns ? (first_row + row) * columns + column : elements;
    };

    const unsigned thread = threadIdx.x, line = thread / WIDTH, lane = line % lanes;
    const unsigned summed = element_at(line / lanes, thread % WIDTH);
    if (summed < elements)
        shares[line][thread % WIDTH] = sum_of(partials + (int64_t(lane) * elements + summed),
                                              int((splits - lane + lanes - 1) / lanes), int64_t(lanes) * elements);
    __syncthreads();
    if (thread >= rows * WIDTH)
        return;
    const unsigned row = across ? thread % rows : thread / WIDTH;
    const unsigned column = across ? thread / rows : thread % WIDTH;
    const unsigned element = element_at(row, column);
    if (element >= elements)
        return;
    compute total = 0;
#pragma unroll 1
    for (unsigned i = 0; i < lanes; ++i)
        total += shares[row * lanes + i][column];
    target[place_of(arguments, element, elements)] = narrow(storage(), total);
}
