/* Adds the partial sums of split-K and stores the totals in their tensor.

       target[begin + i0 * strides[0] + ... + i5 * strides[5]] = total[e]
       e = ((((i0 * extents[1] + i1) * extents[2] + i2) * extents[3] + i3) * extents[4] + i4) * extents[5] + i5

   `lanes`, a power of two, share the splits of an element. Both sums are formed in this order:

       share[lane][e] = partials[lane][e] + partials[lane + lanes][e] + partials[lane + 2 * lanes][e] + ...
       total[e] = share[0][e] + share[1][e] + ... + share[lanes - 1][e]

   Both sums have the compute type. The total is rounded once.

   A block has LINES lines of WIDTH threads. LINES / lanes rows form a strip, and the strips stand side by side. A block
   adds WIDTH columns of them, so only the last block has idle threads. Each line is one lane of a row, and neighbouring
   threads read neighbouring elements of one split. If i5 is the innermost axis of the target, rows have WIDTH elements,
   and neighbouring threads write along a row. If another digit is the innermost axis, `across` is 1, rows have
   extents[5] elements, and neighbouring threads write along a column. */
#include "convgrad/problem.h"
#include "types.cuh"

#define WIDTH 32
#define LINES 8
#define THREADS (WIDTH * LINES)
#define ROUND 8           /* loads of a thread that are in flight at once */
#define PITCH (WIDTH + 4) /* puts shares of 4 bytes into different banks, along rows and along columns */

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

/* The sum of `count` partial sums that are `step` apart. The loads of a round are independent. */
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
    /* The number of the element at a place of the patch. It is at least `elements` if there is none. */
    const auto element_at = [&](unsigned row, unsigned column) {
        const unsigned along = blockIdx.x * WIDTH + column, strip = along / columns;
        return (strip * rows + row) * columns + along - strip * columns;
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
