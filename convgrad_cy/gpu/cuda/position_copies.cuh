/* Copies of the rows and columns of positions.cuh into the stages of pipeline.cuh, by threads. */
#ifndef CONVGRAD_POSITION_COPIES_CUH
#define CONVGRAD_POSITION_COPIES_CUH

#include "pipeline.cuh"
#include "positions.cuh"

#if !ENGINE

/* The addresses of a position in both operands. One warp computes them for all threads. */
struct Place {
    int64_t source, target; /* offsets in bytes: of tap 0 in the source, and in the target */
    int at[3];              /* coordinates of tap 0 in the source */
};

struct Copies {
    const Arguments &arguments;
    Place (*const places)[DEPTH]; /* of this step and the next, alternating */
    unsigned begin, count;        /* positions of the split */
    const unsigned char *source, *target;
    int64_t column_offset; /* offset of channel and tap, in bytes */
    int tap_at[3];
    bool row_exists, column_exists;

    /* The chunk of a tile's extent that this thread copies, and its first depth. */
    template <int extent> __device__ static inline int chunk()
    {
        return threadIdx.x % (extent / CHUNK);
    }

    template <int extent> __device__ static inline int first_depth()
    {
        return threadIdx.x / (extent / CHUNK);
    }

    __device__ inline Copies(const Arguments &arguments, Place (*places)[DEPTH], unsigned begin, unsigned count)
        : arguments(arguments), places(places), begin(begin), count(count)
    {
    }

    __device__ inline void
    start(const element *source_begin, const element *target_begin, unsigned first_row, unsigned first_column)
    {
        const unsigned row = first_row + chunk<TILE_ROWS>() * CHUNK;
        row_exists = row < unsigned(arguments.target_padded);
        target = reinterpret_cast<const unsigned char *>(target_begin + row);
        source = reinterpret_cast<const unsigned char *>(source_begin);
        const unsigned column = first_column + chunk<TILE_COLUMNS>() * CHUNK;
        int tap[3];
        locate_tap(arguments, column, tap);
        column_exists = tap[0] < int(arguments.axes[0].taps);
        column_offset = column % unsigned(arguments.source_padded);
#pragma unroll
        for (int i = 0; i < 3; i++) {
            tap_at[i] = tap[i] * int(arguments.axes[i].source_tap);
            column_offset += tap_at[i] * arguments.source.axis[i];
        }
        column_offset *= SIZE;
    }

    /* Warps take turns. If a stage has more positions than a warp has lanes, two warps work together. */
    __device__ inline void prepare(int step)
    {
        constexpr int lanes = DEPTH > 32 ? DEPTH : 32;
        const int lane = threadIdx.x % lanes;
        if (threadIdx.x / lanes == step % (THREADS / lanes) && lane < DEPTH)
            places[step % 2][lane] = place_of(begin + step * DEPTH + lane);
    }

    /* The place of a position, which may be beyond the last one. */
    __device__ inline Place place_of(unsigned position) const
    {
        unsigned at[3];
        const unsigned image = locate(arguments, position, at);
        Place place;
        place.source = image * arguments.source.batch;
        place.target = image * arguments.target.batch;
#pragma unroll
        for (int i = 0; i < 3; i++) {
            place.at[i] = int(conv_source(&arguments.axes[i], at[i], 0));
            place.source += place.at[i] * arguments.source.axis[i];
            place.target += int(at[i]) * arguments.target.axis[i];
        }
        place.source *= SIZE;
        place.target *= SIZE;
        return place;
    }

    __device__ inline void load(int step, unsigned char *stage)
    {
        const Place *const now = places[step % 2];
        const int left = int(count) - step * DEPTH;
        constexpr int rows_stride = THREADS / (TILE_ROWS / CHUNK), columns_stride = THREADS / (TILE_COLUMNS / CHUNK);
        constexpr int rows = DEPTH / rows_stride, columns = DEPTH / columns_stride;
        const unsigned char *row_from[rows], *column_from[columns];
        bool column_inside[columns];
#pragma unroll
        for (int i = 0; i < rows; i++)
            row_from[i] = target + now[first_depth<TILE_ROWS>() + i * rows_stride].target;
#pragma unroll
        for (int i = 0; i < columns; i++) {
            const int depth = first_depth<TILE_COLUMNS>() + i * columns_stride;
            const Place place = now[depth];
            column_from[i] = source + (place.source + column_offset);
            column_inside[i] = column_exists & (depth < left);
#pragma unroll
            for (int j = 0; j < 3; j++)
                column_inside[i] &= unsigned(place.at[j] + tap_at[j]) < unsigned(arguments.axes[j].source_size);
        }
#pragma unroll
        for (int i = 0; i < rows; i++) {
            const int depth = first_depth<TILE_ROWS>() + i * rows_stride;
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++)
                copy_16_bytes(stage + plane * ROWS_BYTES + chunk_by_depth<TILE_ROWS>(depth, chunk<TILE_ROWS>()),
                              row_from[i] + plane * (arguments.target_plane * SIZE), row_exists & (depth < left));
        }
        stage += PLANES * ROWS_BYTES;
#pragma unroll
        for (int i = 0; i < columns; i++) {
            const int depth = first_depth<TILE_COLUMNS>() + i * columns_stride;
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++)
                copy_16_bytes(stage + plane * COLUMNS_BYTES
                                  + chunk_by_depth<TILE_COLUMNS>(depth, chunk<TILE_COLUMNS>()),
                              column_from[i] + plane * (arguments.source_plane * SIZE), column_inside[i]);
        }
    }
};

#endif

#endif
