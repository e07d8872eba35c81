/* Copies of the rows and columns of positions.cuh into the stages of ring.cuh, by the copy engine (TMA). A box has 64
   rows or columns and DEPTH positions. The columns of a box belong to one tap, because source_padded is a multiple of
   64. */
#ifndef CONVGRAD_POSITION_BOXES_CUH
#define CONVGRAD_POSITION_BOXES_CUH

#include "positions.cuh"
#include "ring.cuh"

#if ENGINE

/* Tensor maps, made by engine.py. */
struct Maps {
    TensorMap target, source;
};

#define MAPS const __grid_constant__ Maps maps,

struct Boxes {
    static constexpr int EXTENT = 64; /* channels of a box */
    static constexpr int COLUMN_BOXES = TILE_COLUMNS / EXTENT;
    static constexpr int BYTES = EXTENT * DEPTH * SIZE;

    const Arguments &arguments;
    const Maps &maps;
    unsigned position;
    int row, channel[COLUMN_BOXES], offset[COLUMN_BOXES][3];

    __device__ inline Boxes(const Arguments &arguments, const Maps &maps) : arguments(arguments), maps(maps)
    {
    }

    /* Offset of the tap with the smallest coordinate from tap 0: 0 or negative. */
    __device__ inline int least(int i) const
    {
        const int reach = int((arguments.axes[i].taps - 1) * arguments.axes[i].source_tap);
        return reach < 0 ? reach : 0;
    }

    __device__ inline void start(unsigned begin, int first_row, unsigned first_column)
    {
        position = begin;
        row = first_row;
#pragma unroll
        for (int j = 0; j < COLUMN_BOXES; j++) {
            const unsigned column = first_column + j * EXTENT;
            int tap[3];
            locate_tap(arguments, column, tap);
            const bool exists = tap[0] < int(arguments.axes[0].taps);
            channel[j] = exists ? int(column % unsigned(arguments.source_padded)) : int(arguments.source_padded);
#pragma unroll
            for (int i = 0; i < 3; i++)
                offset[j][i] = exists ? tap[i] * int(arguments.axes[i].source_tap) - least(i) : 0;
        }
    }

    __device__ inline void load(unsigned char *stage, Meter *meter)
    {
        unsigned at[3];
        const int image = int(locate(arguments, position, at)), axes = int(arguments.image_axes);
        int of_target[3], of_source[3];
        const int none[3] = {};
#pragma unroll
        for (int i = 0; i < 3; i++) {
            of_target[i] = int(at[i]);
            of_source[i] = int(conv_source(&arguments.axes[i], at[i], 0)) + least(i);
        }
#pragma unroll
        for (int i = 0; i < TILE_ROWS / EXTENT; i++, stage += BYTES)
            copy_pixels(stage, maps.target, meter, axes, row + i * EXTENT, of_target, image, none);
#pragma unroll
        for (int j = 0; j < COLUMN_BOXES; j++, stage += BYTES)
            copy_pixels(stage, maps.source, meter, axes, channel[j], of_source, image, offset[j]);
        position += DEPTH;
    }
};

#else
#define MAPS
#endif

#endif
