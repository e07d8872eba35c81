/* Correlations on tensor cores: fprop, and dgrad with all its stride phases in one launch.

       target[position][o] = sum over tap, c of  source[position at tap][c] * filter[o][tap][c]

   For each group and phase this is a matrix product, positions x (taps, c) by (taps, c) x o. Each block computes a tile
   of it (tile.cuh). No such matrix exists in memory (implicit GEMM): each thread copies chunks of 16 bytes of channels
   directly from source and filter, and zeros for elements that do not exist.

   Channels are adjacent in both operands (in the caller's arrays, or after pack.cu), and their number is a multiple of
   CHUNK; padded channels are zero in both. RESULT is the type of the target, which may have any strides. If there are
   few tiles, sums are split among blocks (split-K), the targets are partial sums, and reduce.cu adds them. If groups or
   phases are joined, the filter has holes. */
#include "definition.cuh"
#include "tap_copies.cuh"

typedef RESULT result;

/* Stores the tile through shared memory, one row of warps after another, so that neighbouring threads write
   neighbouring addresses: columns of one row if channels come last, else rows of one column. The paddings 8 and 4 let
   the scattered writes of the sums use at least half of the banks. Bytes of shared memory (tiles.py):

       8 (TILE_ROWS + TILE_COLUMNS)
       + max(WARP_ROWS (TILE_COLUMNS + 8), TILE_COLUMNS (WARP_ROWS + 4)) sizeof(sum_type) */
constexpr int RESULT_CHUNK = 16 / sizeof(result);
/* Chunks that a thread stores at a time. Without warp groups, registers still hold the sums of later rows, so one. */
constexpr int STORED = WARPGROUPS ? 4 : 1;

template <int row_step, int column_step> __device__ inline void stage_sums(sum_type *staged, const Sums sums)
{
    for_sums(sums, [&](int row, int column, const sum_type *pair) {
        sum_type *const to = staged + (row - warp_row()) * row_step + column * column_step;
        to[0] = pair[0];
        to[column_step] = pair[1];
    });
}

/* Stores 16 bytes of results and returns whether all of them are finite. Sums are read 16 bytes at a time, because
   single reads of a warp's threads would use only 4 banks. */
__device__ inline bool store_chunk(result *to, const sum_type *from)
{
    union {
        sum_type values[RESULT_CHUNK];
        uint4 all[RESULT_CHUNK * sizeof(sum_type) / 16];
    } sums;
    union {
        result values[RESULT_CHUNK];
        uint4 all;
    } chunk;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < int(sizeof sums / 16); i++)
        sums.all[i] = reinterpret_cast<const uint4 *>(from)[i];
#pragma unroll
    for (int k = 0; k < RESULT_CHUNK; k++) {
        chunk.values[k] = narrow(result(), sums.values[k]);
        finite &= is_finite(sums.values[k]);
    }
    *reinterpret_cast<uint4 *>(to) = chunk.all;
    return finite;
}

extern "C" __global__ void
__launch_bounds__(THREADS, BLOCKS) correlate(const element *__restrict__ source, const element *__restrict__ filter,
                                             result *__restrict__ target, const __grid_constant__ Arguments arguments)
{
    DYNAMIC_SHARED(dynamic);
    __shared__ Walk walk;
    unsigned char *const shared = first_stage(dynamic);

    if (threadIdx.x < 3) {
        unsigned phase = blockIdx.y;
        for (int i = 2; i > int(threadIdx.x); i--)
            phase /= unsigned(arguments.phases[i]);
        walk.axis[threadIdx.x] = arguments.axes[threadIdx.x][phase % unsigned(arguments.phases[threadIdx.x])];
    }
    __syncthreads();
    /* The tiles of a row of tiles are neighbours in the grid, because they read the same source. */
    const unsigned across = unsigned((arguments.columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
    const unsigned rows = unsigned(arguments.batch * walk.positions());
    const unsigned first_row = blockIdx.x / across * TILE_ROWS;
    const int first_column = int(blockIdx.x % across * TILE_COLUMNS);
    if (first_row >= rows)
        return; /* other phases have more positions */
    const unsigned group = blockIdx.z / unsigned(arguments.splits), split = blockIdx.z % unsigned(arguments.splits);
    source += group * arguments.source.group;
    filter += group * arguments.filter.group;
    target += split * arguments.target_split + group * arguments.target.group;

    const int64_t depths = walk.axis[0].taps * walk.axis[1].taps * walk.axis[2].taps * arguments.channels;
    const int64_t begin = split * arguments.steps * DEPTH, most = begin + arguments.steps * DEPTH;
    const int64_t end = depths < most ? depths : most; /* less than `begin` if other phases have more taps */
    Sums sums;
    {
        Copies copies(walk, arguments);
        copies.start(source, first_row, rows, filter, first_column, int(begin));
        multiply_all<false>(sums, shared, int((end - begin + DEPTH - 1) / DEPTH), copies);
    }
    wait_copies<0>();

    int64_t *const row_target = reinterpret_cast<int64_t *>(shared);
    int64_t *const column_targets = row_target + TILE_ROWS;
    sum_type *const staged = reinterpret_cast<sum_type *>(column_targets + TILE_COLUMNS);
    __syncthreads(); /* all threads have read the stages */
    for (int i = threadIdx.x; i < TILE_ROWS; i += THREADS) {
        unsigned place[3];
        int64_t offset = int64_t(walk.locate(first_row + i, place)) * arguments.target.batch;
        for (int j = 0; j < 3; j++)
            offset += conv_target(&walk.axis[j], place[j]) * arguments.target.axis[j];
        row_target[i] = offset;
    }
    for (int i = threadIdx.x; i < TILE_COLUMNS; i += THREADS)
        column_targets[i] = column_target(arguments, first_column + i);
    const bool last = arguments.channels_last, chunks = arguments.whole_chunks;
    const int row_step = last ? TILE_COLUMNS + 8 : 1, column_step = last ? 1 : WARP_ROWS + 4;
    const int columns = int(arguments.columns) - first_column;
    const int unit = chunks ? RESULT_CHUNK : 1;
    for (int part = 0; part < TILE_ROWS; part += WARP_ROWS) {
        if (part > 0)
            __syncthreads(); /* all threads have read the previous part */
        if (warp_row() == part) {
            if (last)
                stage_sums<TILE_COLUMNS + 8, 1>(staged, sums);
            else
                stage_sums<1, WARP_ROWS + 4>(staged, sums);
        }
        __syncthreads();
        bool finite = true;
        if (chunks) {
#pragma unroll STORED
            for (int i = threadIdx.x; i < WARP_ROWS * TILE_COLUMNS / RESULT_CHUNK; i += THREADS) {
                const int row = i * RESULT_CHUNK / TILE_COLUMNS, column = i * RESULT_CHUNK % TILE_COLUMNS;
                if (first_row + part + row < rows && column < columns)
                    finite &= store_chunk(target + row_target[part + row] + column_targets[column],
                                          staged + row * (TILE_COLUMNS + 8) + column);
            }
        } else {
#pragma unroll 1
            for (int i = threadIdx.x; i < WARP_ROWS * TILE_COLUMNS; i += THREADS) {
                const int row = last ? i / TILE_COLUMNS : i % WARP_ROWS;
                const int column = last ? i % TILE_COLUMNS : i / WARP_ROWS;
                if (first_row + part + row >= rows || column >= columns)
                    continue;
                const sum_type sum = staged[row * row_step + column * column_step];
                target[row_target[part + row] + column_targets[column]] = narrow(result(), sum);
                finite &= is_finite(sum);
            }
        }
        /* Each thread repairs the results that it has stored. */
#pragma unroll 1
        for (int i = threadIdx.x; !finite && i < WARP_ROWS * TILE_COLUMNS / unit; i += THREADS) {
            const int element = i * unit;
            const int row = last ? element / TILE_COLUMNS : i % WARP_ROWS;
            const int column = last ? element % TILE_COLUMNS : i / WARP_ROWS;
            if (first_row + part + row >= rows || column >= columns)
                continue;
            const sum_type *from = staged + row * row_step + column * column_step;
            result *to = target + row_target[part + row] + column_targets[column];
#pragma unroll 1
            for (int k = 0; k < unit; k++)
                if (!is_finite(from[k]))
                    to[k] = narrow(result(), defined_sum(source, filter, walk, arguments, first_row + part + row,
                                                         first_column + column + k, begin, end));
        }
    }
}
