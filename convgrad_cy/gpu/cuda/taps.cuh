/* The matrix product of a block of mma.cu: rows are positions of one stride phase, columns are channels of the target,
   depths are channels of one tap after another. tap_copies.cuh or tap_boxes.cuh copies them into the stages. */
#ifndef CONVGRAD_TAPS_CUH
#define CONVGRAD_TAPS_CUH

#include "convgrad/problem.h"
#include "tile.cuh"

constexpr int MOST_PHASES = 4; /* most phases of an axis in one launch: MOST_PHASES of products.py */

/* mma.py lists them in this order. */
struct Arguments {
    int64_t phases[3];
    conv_axis axes[3][MOST_PHASES];
    int64_t batch;
    int64_t channels;        /* per group, of source and filter in memory */
    int64_t target_channels; /* per group */
    int64_t columns;         /* of all joined phases, one after another (joins.py) */
    int64_t splits;
    int64_t steps; /* stages of a split */
    strides source;
    int64_t source_plane;
    strides filter; /* `batch` is the stride of the target's channels */
    int64_t filter_plane;
    strides target;
    int64_t target_split;  /* from one split's target to the next */
    int64_t channels_last; /* the target's innermost axis is its channels */
    int64_t whole_chunks;  /* channels last, stored 16 bytes at a time */
    int64_t joined[3];     /* phases of each axis that are joined as columns */
    int64_t holes;         /* whether the filter may have holes */
};

/* The walk of one stride phase. */
struct Walk {
    conv_axis axis[3];

    __device__ inline int64_t positions() const
    {
        return axis[0].positions * axis[1].positions * axis[2].positions;
    }

    __device__ inline int64_t taps() const
    {
        return axis[0].taps * axis[1].taps * axis[2].taps;
    }

    /* Splits a row into image (returned) and place. Rows fit into 32 bits, whose division is fast. */
    __device__ inline unsigned locate(unsigned row, unsigned place[3]) const
    {
#pragma unroll
        for (int i = 2; i >= 0; i--) {
            const unsigned size = unsigned(axis[i].positions);
            place[i] = row % size;
            row /= size;
        }
        return row;
    }
};

/* The offset of a column's result in the target, relative to its position. */
__device__ inline int64_t column_target(const Arguments &arguments, unsigned column)
{
    const unsigned channels = unsigned(arguments.target_channels);
    int64_t offset = column % channels * arguments.target.channel;
    column /= channels;
#pragma unroll 1
    for (int i = 2; i >= 0; i--) {
        const unsigned phases = unsigned(arguments.joined[i]);
        offset += column % phases * arguments.target.axis[i];
        column /= phases;
    }
    return offset;
}

#endif
