/* The matrix product of a block of mma_wgrad.cu: rows are channels of the target, columns are channels of the source at
   one tap after another, depths are positions of the whole batch. position_copies.cuh or position_boxes.cuh copies them
   into the stages. */
#ifndef CONVGRAD_POSITIONS_CUH
#define CONVGRAD_POSITIONS_CUH

#include "convgrad/problem.h"
#include "tile.cuh"

/* mma.py lists them in this order. */
struct Arguments {
    conv_axis axes[3];
    int64_t batch;
    int64_t source_padded;   /* channels per group in memory, with padding */
    int64_t source_channels; /* without padding; of each group, if groups are joined */
    int64_t target_padded;
    int64_t target_channels;
    int64_t group_of_row; /* groups per row, in units of 1 / 2^16; 0 if no groups are joined */
    int64_t across;       /* tiles across the columns */
    int64_t steps;        /* stages of a split, DEPTH positions each */
    strides source;
    int64_t source_plane;
    strides target;
    int64_t target_plane;
    int64_t image_axes; /* spatial axes in tensor maps, the last ones */
};

/* Splits a position of the whole batch into image (returned) and place. Positions fit into 32 bits, whose division is
   fast. */
__device__ inline unsigned locate(const Arguments &arguments, unsigned position, unsigned place[3])
{
#pragma unroll
    for (int i = 2; i >= 0; i--) {
        const unsigned size = unsigned(arguments.axes[i].positions);
        place[i] = position % size;
        position /= size;
    }
    return position;
}

__device__ inline void locate_tap(const Arguments &arguments, unsigned column, int tap[3])
{
    unsigned rest = column / unsigned(arguments.source_padded);
#pragma unroll
    for (int i = 2; i >= 0; i--) {
        const unsigned size = unsigned(arguments.axes[i].taps);
        tap[i] = int(i ? rest % size : rest);
        rest /= size;
    }
}

#endif
