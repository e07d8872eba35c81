/* Copies of the rows and columns of taps.cuh into the stages of pipeline.cuh, by threads. */
#ifndef CONVGRAD_TAP_COPIES_CUH
#define CONVGRAD_TAP_COPIES_CUH

#include "pipeline.cuh"
#include "taps.cuh"

/* Rows of both tiles have ROW_CHUNKS chunks. A thread copies one chunk of every ROWS_APART-th row, always at the same
   depth. If there are fewer than ROWS_APART columns, the first warps copy them. Offsets are computed when a tap begins;
   within a tap, all addresses advance together. */
constexpr int ROW_CHUNKS = ROW_BYTES / 16;
constexpr int ROWS_APART = THREADS / ROW_CHUNKS;
constexpr int ROWS_A_THREAD = TILE_ROWS / ROWS_APART;
constexpr int COLUMNS_A_THREAD = (TILE_COLUMNS + ROWS_APART - 1) / ROWS_APART;

struct Copies {
    const Walk &walk;
    const Arguments &arguments;
    int to;                                   /* offset of this thread's first chunk in a tile */
    const unsigned char *rows[ROWS_A_THREAD]; /* at tap 0, which may be outside */
    int row_at[ROWS_A_THREAD][3];
    const unsigned char *first_column;
    unsigned columns; /* bit i: whether column i exists */
    int channel, tap[3];
    unsigned inside;                      /* bit i: whether row i has this tap inside the source */
    int64_t source_offset, filter_offset; /* of tap and channel, in bytes */

    __device__ inline Copies(const Walk &walk, const Arguments &arguments) : walk(walk), arguments(arguments)
    {
    }

    __device__ inline void start(const element *source, unsigned first_row, unsigned row_count, const element *filter,
                                 int first_filter, int first_depth)
    {
        const int mine = threadIdx.x / ROW_CHUNKS;
        to = chunk_by_rows(mine, threadIdx.x % ROW_CHUNKS);
#pragma unroll
        for (int i = 0; i < ROWS_A_THREAD; i++) {
            const unsigned row = first_row + mine + ROWS_APART * i;
            unsigned place[3];
            int64_t offset = walk.locate(row, place) * arguments.source.batch;
#pragma unroll
            for (int j = 0; j < 3; j++) {
                row_at[i][j] = int(conv_source(&walk.axis[j], place[j], 0));
                offset += row_at[i][j] * arguments.source.axis[j];
            }
            rows[i] = reinterpret_cast<const unsigned char *>(source) + offset * SIZE;
            if (row >= row_count)
                row_at[i][0] = -0x40000000; /* outside at every tap */
        }
        columns = 0;
#pragma unroll
        for (int i = 0; i < COLUMNS_A_THREAD; i++)
            columns |= unsigned(first_filter + mine + ROWS_APART * i < arguments.columns) << i;
        first_column =
            reinterpret_cast<const unsigned char *>(filter) + (first_filter + mine) * arguments.filter.batch * SIZE;
        const unsigned depth = first_depth + threadIdx.x % ROW_CHUNKS * CHUNK, channels = unsigned(arguments.channels);
        unsigned rest = depth / channels;
        channel = depth % channels;
#pragma unroll
        for (int i = 2; i > 0; i--) {
            const unsigned size = walk.axis[i].taps > 0 ? unsigned(walk.axis[i].taps) : 1;
            tap[i] = rest % size;
            rest /= size;
        }
        tap[0] = rest;
        settle();
    }

    /* Carries channels over to taps, and computes the values that depend on the tap. */
    __device__ inline void settle()
    {
        const int channels = int(arguments.channels);
        bool more = tap[0] < int(walk.axis[0].taps);
        while (channel >= channels && more) {
            channel -= channels;
            bool carry = true;
#pragma unroll
            for (int i = 2; i >= 0; i--) {
                tap[i] += carry;
                carry = i > 0 && tap[i] == int(walk.axis[i].taps);
                if (carry)
                    tap[i] = 0;
            }
            more = tap[0] < int(walk.axis[0].taps);
        }
        inside = more ? (1u << ROWS_A_THREAD) - 1 : 0;
        columns = more ? columns : 0; /* none after the last tap */
        int64_t source = channel, filter = channel;
#pragma unroll
        for (int j = 0; j < 3; j++) {
            const int at = tap[j] * int(walk.axis[j].source_tap), size = int(walk.axis[j].source_size);
            source += at * arguments.source.axis[j];
            filter += int(conv_filter(&walk.axis[j], tap[j])) * arguments.filter.axis[j];
#pragma unroll
            for (int i = 0; i < ROWS_A_THREAD; i++)
                if (unsigned(row_at[i][j] + at) >= unsigned(size))
                    inside &= ~(1u << i);
        }
        source_offset = source * SIZE;
        filter_offset = filter * SIZE;
    }

    __device__ inline void prepare(int)
    {
    }

    __device__ inline void load(int, unsigned char *stage)
    {
        /* The layout of chunks repeats after ROWS_APART rows. */
        const int64_t column_step = ROWS_APART * SIZE * arguments.filter.batch;
        stage += to;
#pragma unroll
        for (int i = 0; i < ROWS_A_THREAD; i++)
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++)
                copy_16_bytes(stage + plane * ROWS_BYTES + i * (ROWS_APART * ROW_BYTES),
                              rows[i] + source_offset + plane * (arguments.source_plane * SIZE), inside >> i & 1);
        const unsigned char *from = first_column + filter_offset;
        stage += PLANES * ROWS_BYTES;
        const bool copies_columns =
            TILE_COLUMNS % ROWS_APART == 0 || threadIdx.x / ROW_CHUNKS < TILE_COLUMNS % ROWS_APART;
#pragma unroll
        for (int i = 0; copies_columns && i < COLUMNS_A_THREAD; i++, from += column_step)
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++)
                copy_16_bytes(stage + plane * COLUMNS_BYTES + i * (ROWS_APART * ROW_BYTES),
                              from + plane * (arguments.filter_plane * SIZE), columns >> i & 1);
        channel += DEPTH;
        source_offset += DEPTH * SIZE;
        filter_offset += DEPTH * SIZE;
        if (channel >= int(arguments.channels))
            settle();
    }
};

#endif
