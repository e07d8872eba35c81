/* The gradient of the filter on tensor cores, in partial sums that reduce.cu adds.

       partials[split][group][o][tap][c] = sum over p in split of  target[p][o] * source[p at tap][c]

   is for each group a product of o x positions p by positions x (taps, c); joined groups (joins.py) are one product, of
   which only what is of one group is kept. Its depth are positions, which lie one after another in memory with their
   channels together: tiles "by depth" (tile.cuh), which ldmatrix transposes. A thread copies the same chunk of channels,
   of the same tap, of several positions in each stage. Operands are packed as for mma.cu. */
#include "convgrad/problem.h"
#include "pipeline.cuh"

/* Made by mma.py, in this order. */
struct Arguments {
    conv_axis axes[3];
    int64_t batch;
    int64_t source_padded;   /* channels per group in memory */
    int64_t source_channels; /* that are there; of joined groups, of each */
    int64_t target_padded;
    int64_t target_channels;
    int64_t group_of_row; /* for a row, in parts of 1 / 2^16; 0 where no groups are joined */
    int64_t across;       /* tiles across the columns */
    int64_t steps;        /* stages of a split, DEPTH positions each */
    strides source;
    int64_t source_plane;
    strides target;
    int64_t target_plane;
};

/* What a position is to both operands. One warp finds it out for all. */
struct Place {
    int64_t source, target; /* bytes to tap 0 and to the target */
    int at[3];              /* of tap 0 in the source */
};

/* Splits a position of all of the batch. They fit into 32 bits, where division is fast. */
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

struct Copies {
    const Arguments &arguments;
    Place (*const places)[DEPTH]; /* of this step and the next, in turns */
    unsigned begin, count;        /* positions of the split */
    const unsigned char *source, *target;
    int64_t column_offset; /* of channel and tap, in bytes */
    int tap_at[3];
    bool row_exists, column_exists;

    /* Which chunk of a tile's extent this thread copies, of which depth first, and where that goes. */
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

    /* Warps take turns, two of them together where a stage has more positions than a warp has lanes. */
    __device__ inline void prepare(int step)
    {
        constexpr int lanes = DEPTH > 32 ? DEPTH : 32;
        const int lane = threadIdx.x % lanes;
        if (threadIdx.x / lanes == step % (THREADS / lanes) && lane < DEPTH)
            places[step % 2][lane] = place_of(begin + step * DEPTH + lane);
    }

    /* A position that need not exist. */
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

/* Sums in neighbouring columns, which are stored together. */
struct alignas(2 * sizeof(sum_type)) Pair {
    sum_type of[2];
};

/* One sum by the definition, where the tile's is infinity or NaN (as in mma.cu): the terms that exist. */
__device__ __noinline__ sum_type defined_sum(const element *source, const element *target, const Arguments &arguments,
                                             unsigned begin, unsigned end, int row, unsigned column)
{
    int tap[3];
    locate_tap(arguments, column, tap);
    source += column % unsigned(arguments.source_padded);
    target += row;
    sum_type sum = 0;
    while (begin < end && sum == sum) {
        const unsigned some = end - begin < 8 ? end : begin + 8; /* their loads need not wait for one another */
#pragma unroll 4
        for (; begin < some; begin++) {
            unsigned place[3];
            const unsigned image = locate(arguments, begin, place);
            const element *a = target + image * arguments.target.batch;
            const element *b = source + image * arguments.source.batch;
            bool inside = true;
            for (int i = 0; i < 3; i++) {
                const int64_t at = conv_source(&arguments.axes[i], place[i], tap[i]);
                inside = inside && conv_inside(&arguments.axes[i], at);
                a += place[i] * arguments.target.axis[i];
                b += at * arguments.source.axis[i];
            }
            if (inside)
                sum = multiply_add(whole(a, arguments.target_plane), whole(b, arguments.source_plane), sum);
        }
    }
    return sum;
}

extern "C" __global__ void
__launch_bounds__(THREADS, BLOCKS) wgrad(const element *__restrict__ source, const element *__restrict__ target,
                                         sum_type *__restrict__ partials, const __grid_constant__ Arguments arguments)
{
    DYNAMIC_SHARED(dynamic);
    __shared__ Place places[2][DEPTH];
    unsigned char *const shared = first_stage(dynamic);

    const unsigned across = unsigned(arguments.across);
    const int first_row = int(blockIdx.x / across * TILE_ROWS);
    const unsigned first_column = blockIdx.x % across * TILE_COLUMNS;
    const conv_axis *axes = arguments.axes;
    const int64_t positions = arguments.batch * axes[0].positions * axes[1].positions * axes[2].positions;
    const unsigned begin = unsigned(blockIdx.y * arguments.steps * DEPTH);
    const unsigned most = unsigned(arguments.steps * DEPTH);
    const unsigned left = unsigned(positions) - begin, count = left < most ? left : most;
    source += blockIdx.z * arguments.source.group;
    target += blockIdx.z * arguments.target.group;

    Sums sums;
    {
        Copies copies(arguments, places, begin, count);
        copies.start(source, target, first_row, first_column);
        multiply_all<true>(sums, shared, int((count + DEPTH - 1) / DEPTH), copies);
    }

    const int64_t taps = axes[0].taps * axes[1].taps * axes[2].taps;
    const unsigned channels = unsigned(arguments.source_channels);
    partials +=
        (int64_t(blockIdx.y) * gridDim.z + blockIdx.z) * arguments.target_channels * taps * arguments.source_channels;
    /* Where the sum of a row and a column of the tile goes, and which channel of the row's group it is of: one of
       `channels` where there is such a sum. */
    const auto place_of = [&](int row, int column, unsigned &channel) {
        const unsigned at = first_column + column, tap = at / unsigned(arguments.source_padded);
        row += first_row;
        const unsigned group = row * unsigned(arguments.group_of_row) >> 16;
        channel = at % unsigned(arguments.source_padded) - group * channels;
        sum_type *const to = partials + ((row * taps + tap) * arguments.source_channels + int(channel));
        if (row >= arguments.target_channels || tap >= taps)
            channel = channels;
        return to;
    };
    const bool even = channels % 2 == 0; /* then a pair begins at a multiple of its size, and exists as a whole */
    bool finite = true;
    for_sums(sums, [&](int row, int column, const sum_type *pair) {
        unsigned channel;
        sum_type *const to = place_of(row, column, channel);
        finite &= is_finite(pair[0]) & is_finite(pair[1]);
        if (even) {
            if (channel < channels)
                *reinterpret_cast<Pair *>(to) = {pair[0], pair[1]};
        } else {
            if (channel < channels)
                to[0] = pair[0];
            if (channel + 1 < channels) /* also where the first is of the group before */
                to[1] = pair[1];
        }
    });
    if (__syncthreads_or(!finite)) {
#pragma unroll 1
        for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += THREADS) {
            const int row = i / TILE_COLUMNS, column = i % TILE_COLUMNS;
            unsigned channel;
            sum_type *const to = place_of(row, column, channel);
            if (channel < channels && !is_finite(*to))
                *to = defined_sum(source, target, arguments, begin, begin + count, first_row + row,
                                  first_column + column);
        }
    }
}
