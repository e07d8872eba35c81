/* The correlations of mma.cu with operands that the copy engine (TMA) brings, on sm_90a.

   A block computes one tile after another. While the sums of a tile are stored, the copies for the next tile are in
   flight. The target's channels are the innermost axis in memory, in whole chunks of 16 bytes. */
#include "definition.cuh"
#include "tap_boxes.cuh"

typedef RESULT result;

/* Each warp stores its own rows, so that it waits for no other warp: 16 rows of 128 bytes of results at a time, through
   shared memory. PITCH lets the writes of pairs and the reads of chunks use all banks. Bytes of shared memory
   (tiles.py): 16 (128 + 8 sizeof(result)) + 128 ROW_PARTS. */
constexpr int RESULT_CHUNK = 16 / sizeof(result);
constexpr int SOME_COLUMNS = 128 / sizeof(result);
constexpr int PITCH = SOME_COLUMNS + 8;

struct Staged {
    int64_t row_target[ROW_PARTS][16]; /* negative: no such row */
    result rows[16][PITCH];
};

/* The current tile of a block, which takes every gridDim.x-th tile of all phases and splits. */
struct Tile {
    unsigned number, phase, split, first_row;
    int first_column;

    /* Finds the next tile from `number` on; returns whether there is one. Phases with fewer positions have fewer tiles.
       */
    __device__ inline bool find(const BoxArguments &arguments, const Walk *walks)
    {
        const unsigned across = unsigned((arguments.columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
        const unsigned all = unsigned(arguments.all_tiles), tiles = unsigned(arguments.tiles);
        const unsigned phases = unsigned(arguments.phases[0] * arguments.phases[1] * arguments.phases[2]);
        for (; number < all; number += gridDim.x) {
            const unsigned rest = number / tiles, place = number % tiles;
            phase = rest % phases;
            split = rest / phases;
            first_row = place / across * TILE_ROWS;
            first_column = int(place % across * TILE_COLUMNS);
            if (first_row < unsigned(arguments.batch * walks[phase].positions()))
                return true;
        }
        return false;
    }
};

/* The first row of this warp in one part of the rows of its group. */
__device__ inline unsigned first_row_of(const Tile &tile, int part)
{
    const int warp = threadIdx.x / 32;
    return tile.first_row + warp / 4 * GROUP_ROWS + 64 * part + warp % 4 * 16;
}

/* Computes the addresses of a warp's rows in the target. */
__device__ inline void locate_rows(Staged &staged, const Tile &tile, const Walk &walk, const Arguments &arguments)
{
    const int lane = threadIdx.x % 32;
    const unsigned rows = unsigned(arguments.batch * walk.positions());
    for (int part = lane / 16; part < ROW_PARTS; part += 2) {
        const unsigned row = first_row_of(tile, part) + lane % 16;
        unsigned place[3];
        int64_t offset = int64_t(walk.locate(row, place)) * arguments.target.batch;
#pragma unroll
        for (int j = 0; j < 3; j++)
            offset += conv_target(&walk.axis[j], place[j]) * arguments.target.axis[j];
        staged.row_target[part][lane % 16] = row < rows ? offset : -1;
    }
}

/* Writes 16 rows of SOME_COLUMNS columns to the warp's part of shared memory; returns whether all are finite. */
__device__ inline bool stage_columns(Staged &staged, const sum_type (&sums)[TILE_COLUMNS / 8][4], int first)
{
    struct alignas(2 * sizeof(result)) Pair {
        result of[2];
    };
    const int lane = threadIdx.x % 32;
    sum_type zero = 0; /* as long as all sums are finite */
#pragma unroll
    for (int j = 0; j < SOME_COLUMNS / 8; j++)
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
            const sum_type *const pair = sums[first / 8 + j] + k;
            result *const to = &staged.rows[lane / 4 + 4 * k][8 * j + lane % 4 * 2];
            *reinterpret_cast<Pair *>(to) = {narrow(result(), pair[0]), narrow(result(), pair[1])};
            zero = multiply_add(pair[0], 0.0f, multiply_add(pair[1], 0.0f, zero));
        }
    return zero == 0;
}

/* Forms sums again that came out as infinity or NaN. */
__device__ inline void
repair(Staged &staged, const int64_t *row_target, const element *source, const element *filter, const Walk &walk,
       const Arguments &arguments, unsigned first_row, int first_column, Part part)
{
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < 16 * SOME_COLUMNS; i += 32) {
        const int row = i / SOME_COLUMNS, column = i % SOME_COLUMNS;
        result &value = staged.rows[row][column];
        if (row_target[row] >= 0 && first_column + column < int(arguments.columns) && !is_finite(widen(value))) {
            const int64_t begin = part.begin(walk, arguments), end = part.end(walk, arguments);
            value = narrow(result(), defined_sum(source, filter, walk, arguments, first_row + row,
                                                 first_column + column, begin, end));
        }
    }
}

__device__ inline void store_columns(result *target, const Staged &staged, const int64_t *row_target,
                                     const Arguments &arguments, int first_column)
{
    const int lane = threadIdx.x % 32, column = lane % 8 * RESULT_CHUNK;
    if (first_column + column >= int(arguments.columns))
        return;
    const bool is_joined = arguments.columns != arguments.target_channels;
    target += is_joined ? column_target(arguments, unsigned(first_column + column)) : first_column + column;
#pragma unroll
    for (int row = lane / 8; row < 16; row += 4)
        if (row_target[row] >= 0)
            *reinterpret_cast<uint4 *>(target + row_target[row]) =
                *reinterpret_cast<const uint4 *>(&staged.rows[row][column]);
}

extern "C" __global__ void __launch_bounds__(ALL_THREADS, BLOCKS)
    correlate(const element *__restrict__ source, const element *__restrict__ filter, result *__restrict__ target,
              const __grid_constant__ Maps maps, const __grid_constant__ BoxArguments arguments)
{
    DYNAMIC_SHARED(dynamic);
    __shared__ Walk walks[MOST_MAPS];
    __shared__ Ring ring;
    unsigned char *const shared = first_stage(dynamic);
    ring.make();
    const unsigned axis = threadIdx.x % 3;
    unsigned phase = threadIdx.x / 3;
    if (phase < unsigned(arguments.phases[0] * arguments.phases[1] * arguments.phases[2])) {
        Walk &walk = walks[phase];
        for (int i = 2; i > int(axis); i--)
            phase /= unsigned(arguments.phases[i]);
        walk.axis[axis] = arguments.axes[axis][phase % unsigned(arguments.phases[axis])];
    }
    __syncthreads();

    Turn turn;
    Tile tile = {blockIdx.x};
    if (!multiplies()) {
        give_registers<FEW_REGISTERS>();
        for (; threadIdx.x == THREADS && tile.find(arguments, walks); tile.number += gridDim.x) {
            const Walk &walk = walks[tile.phase];
            Boxes boxes(walk, arguments, maps.source[tile.phase], maps.filter);
            boxes.start(tile.first_row, tile.first_column, int(tile.split * arguments.steps));
            fill(ring, turn, shared, Part(walk, arguments, tile.split).stages(walk, arguments), boxes);
        }
    } else {
        take_registers<MANY_REGISTERS>();
        Staged &staged = reinterpret_cast<Staged *>(shared + STAGES * STAGE_BYTES)[threadIdx.x / 32];
        bool is_there = tile.find(arguments, walks);
        while (is_there) {
            const Walk &walk = walks[tile.phase];
            const Part depths(walk, arguments, tile.split);
            Tile next = tile;
            const auto meanwhile = [&] {
                locate_rows(staged, tile, walk, arguments);
                next.number += gridDim.x;
                is_there = next.find(arguments, walks);
            };
            Sums sums;
            multiply_filled<false, FILTER_BY_DEPTH>(sums, ring, turn, shared, depths.stages(walk, arguments),
                                                    meanwhile);
            result *const to = target + tile.split * arguments.target_split;
#pragma unroll
            for (int i = 0; i < ROW_PARTS; i++) {
                const int64_t *const row_target = staged.row_target[i];
#pragma unroll
                for (int some = 0; some < TILE_COLUMNS; some += SOME_COLUMNS) {
                    const bool finite = stage_columns(staged, sums[i], some);
                    const int column = tile.first_column + some;
                    if (__ballot_sync(~0u, !finite)) {
                        __syncwarp();
                        repair(staged, row_target, source, filter, walk, arguments, first_row_of(tile, i), column,
                               depths);
                    }
                    __syncwarp();
                    store_columns(to, staged, row_target, arguments, column);
                    __syncwarp();
                }
            }
            tile = next;
        }
    }
}
