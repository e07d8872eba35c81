/* Copies of the rows and columns of taps.cuh into the stages of ring.cuh, by the copy engine (TMA). A stage has DEPTH
   channels of one tap; the last stage of a tap is filled up with zeros. If the filter's innermost axis is the target's
   channels, columns are by depth. */
#ifndef CONVGRAD_TAP_BOXES_CUH
#define CONVGRAD_TAP_BOXES_CUH

#include "definition.cuh"
#include "ring.cuh"

constexpr int MOST_MAPS = 8; /* most maps of sources in one launch: MOST_MAPS of engine.py */

/* Tensor maps, made by engine.py: the filter, and the source of each phase. */
struct Maps {
    TensorMap filter, source[MOST_MAPS];
};

/* mma_engine.py lists them in this order. */
struct BoxArguments : Arguments {
    int64_t image_axes; /* spatial axes in tensor maps, the last ones */
    int64_t tiles;      /* tiles of a phase and a split */
    int64_t all_tiles;
};

/* The depths that a split of a phase sums, in stages of one tap each. There may be none if other phases have more taps.
   They are computed when needed, which is rare, because stored values would take registers. */
struct Part {
    unsigned split;

    __device__ inline Part(const Walk &, const Arguments &, unsigned split) : split(split)
    {
    }

    __device__ static inline int64_t stages_of_a_tap(const Arguments &arguments)
    {
        return (arguments.channels + DEPTH - 1) / DEPTH;
    }

    /* The depth at which a stage begins. */
    __device__ static inline int64_t depth(int64_t stage, const Walk &walk, const Arguments &arguments)
    {
        const int64_t a_tap = stages_of_a_tap(arguments), tap = stage / a_tap;
        return tap < walk.taps() ? tap * arguments.channels + stage % a_tap * DEPTH : walk.taps() * arguments.channels;
    }

    __device__ inline int64_t begin(const Walk &walk, const Arguments &arguments) const
    {
        return depth(split * arguments.steps, walk, arguments);
    }

    __device__ inline int64_t end(const Walk &walk, const Arguments &arguments) const
    {
        return depth((split + 1) * arguments.steps, walk, arguments);
    }

    __device__ inline int stages(const Walk &walk, const Arguments &arguments) const
    {
        const int64_t left = walk.taps() * stages_of_a_tap(arguments) - split * arguments.steps;
        return int(left < arguments.steps ? left : arguments.steps);
    }
};

struct Boxes {
    const Walk &walk;
    const BoxArguments &arguments;
    const TensorMap &source, &filter;
    int image, place[3]; /* of the first row in the source, at the tap with the smallest coordinates */
    int column, channel, tap[3];

    __device__ inline Boxes(const Walk &walk, const BoxArguments &arguments, const TensorMap &source,
                            const TensorMap &filter)
        : walk(walk), arguments(arguments), source(source), filter(filter)
    {
    }

    /* Offset of the tap with the smallest coordinate from tap 0: 0 or negative. */
    __device__ inline int least(int i) const
    {
        const int reach = int((walk.axis[i].taps - 1) * walk.axis[i].source_tap);
        return reach < 0 ? reach : 0;
    }

    __device__ inline void start(unsigned first_row, int first_column, int first_stage)
    {
        unsigned at[3];
        image = int(walk.locate(first_row, at));
        for (int i = 0; i < 3; i++)
            place[i] = int(conv_source(&walk.axis[i], at[i], 0)) + least(i);
        column = first_column;
        const int a_tap = int(Part::stages_of_a_tap(arguments));
        channel = first_stage % a_tap * DEPTH;
        int rest = first_stage / a_tap;
        for (int i = 2; i >= 0; i--) {
            const int size = walk.axis[i].taps > 0 ? int(walk.axis[i].taps) : 1;
            tap[i] = i > 0 ? rest % size : rest;
            rest /= size;
        }
    }

    __device__ inline void load(unsigned char *stage, Meter *meter)
    {
        int offset[3], at[5];
#pragma unroll
        for (int i = 0; i < 3; i++) {
            offset[i] = tap[i] * int(walk.axis[i].source_tap) - least(i);
            at[3 - i] = int(conv_filter(&walk.axis[i], tap[i]));
        }
        copy_pixels(stage, source, meter, int(arguments.image_axes), channel, place, image, offset);
        stage += ROWS_BYTES;
        if (FILTER_BY_DEPTH) {
            at[4] = channel;
#pragma unroll 1
            for (int i = 0; i < TILE_COLUMNS; i += 64) {
                at[0] = column + i;
                copy_box(stage + i * (DEPTH * SIZE), filter, meter, at);
            }
        } else {
            at[0] = channel;
            at[4] = column;
            copy_box(stage, filter, meter, at);
        }
        channel += DEPTH;
        if (channel < int(arguments.channels))
            return;
        channel = 0;
        bool carry = true;
#pragma unroll
        for (int i = 2; i >= 0; i--) {
            tap[i] += carry;
            carry = i > 0 && tap[i] == int(walk.axis[i].taps);
            if (carry)
                tap[i] = 0;
        }
    }
};

#endif
