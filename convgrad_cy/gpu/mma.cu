/* Correlations on tensor cores: fprop, and dgrad with all its stride phases in one launch.

       target[position][o] = sum over tap, c of  source[position at tap][c] * filter[o][tap][c]

   is for each group and phase a product of positions x (taps, c) by (taps, c) x o, tiles of which are the blocks' work
   (tile.cuh). Nothing is laid out as such a matrix: each thread copies chunks of 16 bytes of channels from where they
   are in source and filter, and zeros for what does not exist.

   Both have their channels together in memory (as they came, or by pack.cu), a multiple of CHUNK of them; where they
   were padded, zeros meet zeros. RESULT is the type of the target, which has any strides. */
#include "convgrad/problem.h"
#include "tile.cuh"

typedef RESULT result;

constexpr int MOST_PHASES = 4; /* of an axis, in one launch: _MOST_PHASES of mma.py */

/* Made by mma.py, in this order. */
struct Arguments {
    int64_t phases[3];
    conv_axis axes[3][MOST_PHASES];
    int64_t batch;
    int64_t channels; /* of source and filter in memory, per group */
    int64_t columns;  /* channels of the target, per group */
    strides source;
    int64_t source_plane;
    strides filter; /* batch: of the target's channels */
    int64_t filter_plane;
    strides target;
    int64_t channels_last; /* the target's channels are nearest in memory */
    int64_t whole_chunks;  /* and stored 16 bytes at a time */
};

/* One phase, and where it is in a position. */
struct Walk {
    conv_axis axis[3];

    __device__ inline int64_t positions() const
    {
        return axis[0].positions * axis[1].positions * axis[2].positions;
    }

    /* Splits batch * positions; all of them fit into 32 bits, where division is fast. */
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

/* Rows of both tiles are 64 bytes, 4 chunks: a thread copies one chunk of every 32nd row, always at the same depth. What
   that needs of a tap is found when the tap begins; within it, all addresses advance together. */
constexpr int ROWS_A_THREAD = TILE_ROWS / 32;
constexpr int COLUMNS_A_THREAD = TILE_COLUMNS / 32;

struct Copies {
    const Walk &walk;
    const Arguments &arguments;
    int to;                                   /* of this thread's first chunk in a tile */
    const unsigned char *rows[ROWS_A_THREAD]; /* at tap 0, wherever that is */
    int row_at[ROWS_A_THREAD][3];
    const unsigned char *first_column;
    unsigned columns; /* bit i: whether column i is there */
    int channel, tap[3];
    unsigned inside;                      /* bit i: whether row i has this tap */
    int64_t source_offset, filter_offset; /* of tap and channel; in bytes, as all that goes into addresses */

    __device__ inline Copies(const Walk &walk, const Arguments &arguments) : walk(walk), arguments(arguments)
    {
    }

    __device__ inline void
    start(const element *source, unsigned first_row, unsigned row_count, const element *filter, int first_filter)
    {
        const int mine = threadIdx.x / 4;
        to = chunk_by_rows(mine, threadIdx.x % 4);
#pragma unroll
        for (int i = 0; i < ROWS_A_THREAD; i++) {
            const unsigned row = first_row + mine + 32 * i;
            unsigned place[3];
            int64_t offset = walk.locate(row, place) * arguments.source.batch;
#pragma unroll
            for (int j = 0; j < 3; j++) {
                row_at[i][j] = int(conv_source(&walk.axis[j], place[j], 0));
                offset += row_at[i][j] * arguments.source.axis[j];
            }
            rows[i] = reinterpret_cast<const unsigned char *>(source) + offset * SIZE;
            if (row >= row_count)
                row_at[i][0] = -0x40000000; /* outside, whatever the tap */
        }
        columns = 0;
#pragma unroll
        for (int i = 0; i < COLUMNS_A_THREAD; i++)
            columns |= unsigned(first_filter + mine + 32 * i < arguments.columns) << i;
        first_column =
            reinterpret_cast<const unsigned char *>(filter) + (first_filter + mine) * arguments.filter.batch * SIZE;
        channel = threadIdx.x % 4 * CHUNK;
        tap[0] = tap[1] = tap[2] = 0;
        settle();
    }

    /* Carries channels to taps, and finds what changes with the tap. */
    __device__ inline void settle()
    {
        const int channels = int(arguments.channels);
        bool more = walk.axis[0].taps > 0;
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
        columns = more ? columns : 0; /* past the last tap */
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
        /* 32 rows further, chunks lie as they do here. */
        const int64_t column_step = 32 * SIZE * arguments.filter.batch;
        stage += to;
#pragma unroll
        for (int i = 0; i < ROWS_A_THREAD; i++)
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++)
                copy_16_bytes(stage + plane * ROWS_BYTES + i * (32 * 64),
                              rows[i] + source_offset + plane * (arguments.source_plane * SIZE), inside >> i & 1);
        const unsigned char *from = first_column + filter_offset;
        stage += PLANES * ROWS_BYTES;
#pragma unroll
        for (int i = 0; i < COLUMNS_A_THREAD; i++, from += column_step)
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++)
                copy_16_bytes(stage + plane * COLUMNS_BYTES + i * (32 * 64),
                              from + plane * (arguments.filter_plane * SIZE), columns >> i & 1);
        channel += DEPTH;
        source_offset += DEPTH * SIZE;
        filter_offset += DEPTH * SIZE;
        if (channel >= int(arguments.channels))
            settle();
    }
};

/* One result by the definition. Tiles add products with the zeros in padding and, between planes, of parts of numbers:
   right for finite numbers, but infinity times zero is NaN. So what came out as infinity or NaN is formed again here,
   until it is NaN, from terms that exist. */
__device__ __noinline__ sum_type defined_sum(const element *source, const element *filter, const Walk &walk,
                                             const Arguments &arguments, unsigned row, int column)
{
    unsigned place[3];
    source += walk.locate(row, place) * arguments.source.batch;
    filter += column * arguments.filter.batch;
    sum_type sum = 0;
    int64_t tap[3], at[3];
    for (tap[0] = 0; tap[0] < walk.axis[0].taps; tap[0]++)
        for (tap[1] = 0; tap[1] < walk.axis[1].taps; tap[1]++)
            for (tap[2] = 0; tap[2] < walk.axis[2].taps; tap[2]++) {
                const element *a = source, *b = filter;
                bool inside = true;
                for (int i = 0; i < 3; i++) {
                    at[i] = conv_source(&walk.axis[i], place[i], tap[i]);
                    inside = inside && conv_inside(&walk.axis[i], at[i]);
                    a += at[i] * arguments.source.axis[i];
                    b += conv_filter(&walk.axis[i], tap[i]) * arguments.filter.axis[i];
                }
                for (int64_t c = 0; inside && c < arguments.channels; c++) {
                    sum = multiply_add(whole(a + c, arguments.source_plane), whole(b + c, arguments.filter_plane), sum);
                    if (sum != sum)
                        return sum;
                }
            }
    return sum;
}

/* Stores the tile through shared memory, the rows of one row of warps after another, so that threads next to each other
   write what is next to each other in memory: columns of one row where channels come last, else rows of one column.
   The pads 8 and 4 let the scattered writes of the sums use at least half of the banks. Needs (tiles.py)

       8 TILE_ROWS + max(WARP_ROWS (TILE_COLUMNS + 8), TILE_COLUMNS (WARP_ROWS + 4)) sizeof(sum_type)   bytes. */
constexpr int RESULT_CHUNK = 16 / sizeof(result);

extern "C" __global__ void
__launch_bounds__(THREADS, BLOCKS) correlate(const element *__restrict__ source, const element *__restrict__ filter,
                                             result *__restrict__ target, const __grid_constant__ Arguments arguments)
{
    DYNAMIC_SHARED(shared);
    __shared__ Walk walk;

    if (threadIdx.x < 3) {
        unsigned phase = blockIdx.y;
        for (int i = 2; i > int(threadIdx.x); i--)
            phase /= unsigned(arguments.phases[i]);
        walk.axis[threadIdx.x] = arguments.axes[threadIdx.x][phase % unsigned(arguments.phases[threadIdx.x])];
    }
    __syncthreads();
    /* The tiles of a row of tiles are neighbours in the grid, for they read the same source. */
    const unsigned across = unsigned((arguments.columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
    const unsigned rows = unsigned(arguments.batch * walk.positions());
    const unsigned first_row = blockIdx.x / across * TILE_ROWS;
    const int first_column = int(blockIdx.x % across * TILE_COLUMNS);
    if (first_row >= rows)
        return; /* other phases have more positions */
    source += blockIdx.z * arguments.source.group;
    filter += blockIdx.z * arguments.filter.group;
    target += blockIdx.z * arguments.target.group + first_column * arguments.target.channel;

    const int64_t depths = walk.axis[0].taps * walk.axis[1].taps * walk.axis[2].taps * arguments.channels;
    Sums sums;
    {
        Copies copies(walk, arguments);
        copies.start(source, first_row, rows, filter, first_column);
        multiply_all<false>(sums, shared, int((depths + DEPTH - 1) / DEPTH), copies);
    }
    wait_copies<0>();

    int64_t *const row_target = reinterpret_cast<int64_t *>(shared);
    sum_type *const staged = reinterpret_cast<sum_type *>(row_target + TILE_ROWS);
    __syncthreads(); /* stages have been read */
    for (int i = threadIdx.x; i < TILE_ROWS; i += THREADS) {
        unsigned place[3];
        int64_t offset = int64_t(walk.locate(first_row + i, place)) * arguments.target.batch;
        for (int j = 0; j < 3; j++)
            offset += conv_target(&walk.axis[j], place[j]) * arguments.target.axis[j];
        row_target[i] = offset;
    }
    const bool last = arguments.channels_last, chunks = arguments.whole_chunks;
    const int row_step = last ? TILE_COLUMNS + 8 : 1, column_step = last ? 1 : WARP_ROWS + 4;
    const int columns = int(arguments.columns) - first_column;
    const int unit = chunks ? RESULT_CHUNK : 1;
    for (int part = 0; part < TILE_ROWS; part += WARP_ROWS) {
        if (part > 0)
            __syncthreads(); /* the part before has been read */
        for_sums(sums, [&](int row, int column, const sum_type *pair) {
            row -= part;
            if (row >= 0 && row < WARP_ROWS) {
                staged[row * row_step + column * column_step] = pair[0];
                staged[row * row_step + (column + 1) * column_step] = pair[1];
            }
        });
        __syncthreads();
        const int units = WARP_ROWS * TILE_COLUMNS / unit;
        bool finite = true;
        /* Once to store and, where a sum is not finite, once more to repair. */
        for (int pass = 0; pass < 2 && (pass == 0 || !finite); pass++)
            for (int i = threadIdx.x; i < units; i += THREADS) {
                const int row = last ? i / (TILE_COLUMNS / unit) : i % WARP_ROWS;
                const int column = last ? i % (TILE_COLUMNS / unit) * unit : i / WARP_ROWS;
                if (first_row + part + row >= rows || column >= columns)
                    continue;
                const sum_type *from = staged + row * row_step + column * column_step;
                result *to = target + row_target[part + row] + column * arguments.target.channel;
                if (pass == 1) {
                    for (int k = 0; k < unit; k++)
                        if (!is_finite(from[k]))
                            to[k] = narrow(result(), defined_sum(source, filter, walk, arguments,
                                                                 first_row + part + row, first_column + column + k));
                } else if (chunks) {
                    union {
                        result values[RESULT_CHUNK];
                        uint4 all;
                    } chunk;
#pragma unroll
                    for (int k = 0; k < RESULT_CHUNK; k++) {
                        chunk.values[k] = narrow(result(), from[k]);
                        finite = finite && is_finite(from[k]);
                    }
                    *reinterpret_cast<uint4 *>(to) = chunk.all;
                } else {
                    *to = narrow(result(), *from);
                    finite = finite && is_finite(*from);
                }
            }
    }
}
