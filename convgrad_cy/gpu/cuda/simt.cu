/* Convolution as a matrix product without tensor cores: c[row][column] = sum over depth of a[row][depth] *
   b[depth][column].

                 row                          depth                        column
       fprop     position of y                tap, channel of x            channel of y
       dgrad     position of a phase of x     tap of it, channel of y      channel of x
       wgrad     tap, channel of x            position of y                channel of y

   Of row and depth, one is a position and the other is a tap with a channel. Both address the source: an address in it
   is a sum of one part for each (problem.h):

       a[row][depth] = source[place(row).source + place(depth).source]     if the sums of their coordinates are inside
       b[depth][column] = b[place(depth).other + column * stride]
       c[row][column] at c[place(row).other + column * stride], or at partials[split][group][row][column]

   So one kernel computes all three. All threads together fill a table of the places of depths in shared memory, some
   steps ahead.

   Padding. A term whose position is outside the source does not exist, but a tile holds a zero for it, and zero times
   infinity is NaN. So with padding (PADDED), the thread that has stored a NaN forms this sum again from the existing
   terms (exact_sum). The loop stops at the first NaN, so it is long only if zeros of padding met infinities and there
   is no other NaN. With finite data it costs one comparison for each element of the result.

   Macros: STORAGE; WGRAD; RANK, the number of axes with coordinates, the last ones; PADDED; PARTIALS, whether c holds
   the sums of a split; WALKS, the number of walks of all axes; TAPS_INNER, whether the tap or the channel is the faster
   digit; A_BY_DEPTH and B_BY_DEPTH, whether neighbouring threads read neighbours in depth, or in rows and columns;
   A_VECTOR and B_VECTOR, the elements that a thread reads at once; C_BY_ROW, whether neighbouring threads store
   neighbouring rows or columns; TILE_ROWS, TILE_COLUMNS, TILE_DEPTH, the tile of a block; THREAD_ROWS, THREAD_COLUMNS,
   the tile of a thread; RESIDENT, the number of blocks for whose registers a multiprocessor has room. */
#include "convgrad/problem.h"
#include "types.cuh"

struct Arguments { /* simt.py lists them in this order */
    int64_t batch, groups, channels, columns;
    int64_t splits, split_depth, row_tiles, column_tiles;
    int64_t source[6], filter[6], target[6]; /* strides of (N, G, C, D, H, W) and of (G, out, in, D, H, W) */
    int64_t walks[3];                        /* number of walks of each axis */
    conv_axis axis[WALKS];                   /* walks of D, then of H, then of W */
};

#if PARTIALS
typedef compute result;
__device__ inline result rounded(compute sum)
{
    return sum;
}
__device__ inline compute exact(result sum)
{
    return sum;
}
#else
typedef storage result;
__device__ inline result rounded(compute sum)
{
    return narrow(storage(), sum);
}
__device__ inline compute exact(result sum)
{
    return widen(sum);
}
#endif

#define THREAD_GRID_COLUMNS (TILE_COLUMNS / THREAD_COLUMNS)
#define THREADS (TILE_ROWS / THREAD_ROWS * THREAD_GRID_COLUMNS)
/* A warp is a rectangle of threads, as square as possible, because its products then need few different operands. */
#define WARP_COLUMNS (THREAD_GRID_COLUMNS < 8 ? THREAD_GRID_COLUMNS : 8)
#define WARP_ROWS (32 / WARP_COLUMNS)
/* A thread's rows and columns are chunks of 16 bytes, PASS_ROWS (PASS_COLUMNS) apart. */
#define CHUNK (16 / int(sizeof(compute)))
#define PASSES (THREAD_ROWS / CHUNK)
#define PASS_ROWS (TILE_ROWS / PASSES)
#define PASS_COLUMNS (TILE_COLUMNS / (THREAD_COLUMNS / CHUNK))
/* Each row of a tile has one extra chunk, so that the elements of a column are in different banks. */
#define A_PITCH (TILE_ROWS + CHUNK)
#define B_PITCH (TILE_COLUMNS + CHUNK)
#define TILES (TILE_DEPTH * (A_PITCH + B_PITCH))
#define PASS_SUMS (PASS_ROWS * (TILE_COLUMNS + 1))
#define TABLE 256
#define A_LOADS (TILE_ROWS * TILE_DEPTH / A_VECTOR / THREADS)
#define B_LOADS (TILE_COLUMNS * TILE_DEPTH / B_VECTOR / THREADS)

static_assert(A_LOADS * A_VECTOR * THREADS == TILE_ROWS * TILE_DEPTH, "all threads load as much of a");
static_assert(B_LOADS * B_VECTOR * THREADS == TILE_COLUMNS * TILE_DEPTH, "all threads load as much of b");
static_assert(TABLE % TILE_DEPTH == 0, "the table ends with a step");

template <typename Type, int count> struct alignas(sizeof(Type) * count) Vector {
    Type of[count];
};
typedef Vector<storage, A_VECTOR> AVector;
typedef Vector<storage, B_VECTOR> BVector;
typedef Vector<compute, CHUNK> Chunk;

#include "places.cuh"

/* The elements that one thread reads: vectors of `vector` neighbours, `step` apart. */
template <int across, int vector, bool by_depth> struct Reading {
    static const int lanes = (by_depth ? TILE_DEPTH : across) / vector; /* threads side by side */
    static const int step = THREADS / lanes;
    int along, other;
    __device__ explicit Reading(int thread) : along(thread % lanes * vector), other(thread / lanes)
    {
    }
};

extern "C" __global__ void
__launch_bounds__(THREADS, RESIDENT) product(const storage *__restrict__ a, const storage *__restrict__ b, result *c,
                                             const __grid_constant__ Arguments arguments)
{
    /* Two pairs of tiles of a and b: one is multiplied while the other is filled. At the end, a part of the result. */
    __shared__ __align__(16) compute tiles[2 * TILES > PASS_SUMS ? 2 * TILES : PASS_SUMS];
    __shared__ Place places[TABLE]; /* of depths: depth i, counted from the split's first, is at i % TABLE */
    __shared__ Place row_places[TILE_ROWS];
    __shared__ Part part;
    const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
    if (thread == 0)
        set_part(part, arguments, blockIdx.x);
    __syncthreads();
    if (part.row_begin >= part.rows)
        return;
    a += part.group * arguments.source[1];
    b += part.group * (WGRAD ? arguments.target[1] : arguments.filter[0]);
    const int64_t b_stride = WGRAD ? arguments.target[2] : arguments.filter[1];
    for (int row = thread; row < TILE_ROWS; row += THREADS) {
        row_places[row] = place_of<!WGRAD>(arguments, part.walk, part.row_begin + row, part.rows);
#if PARTIALS
        row_places[row].other = int64_t(part.row_begin + row) * part.columns;
#endif
    }

    const Reading<TILE_ROWS, A_VECTOR, A_BY_DEPTH> reading_a(thread);
    const Reading<TILE_COLUMNS, B_VECTOR, B_BY_DEPTH> reading_b(thread);
    const unsigned b_first = part.column_begin + (B_BY_DEPTH ? reading_b.other : reading_b.along);
    const unsigned b_left = part.columns - min(part.columns, b_first);
    const storage *const b_column = b + b_first * b_stride;
    AVector a_read[A_LOADS];
    BVector b_read[B_LOADS];
    __syncthreads();
#if !A_BY_DEPTH
    const Place a_row = row_places[reading_a.along];
#endif

    auto tabulate = [&](int step) {
        for (int i = thread; i < TABLE; i += THREADS)
            places[i] = place_of<WGRAD>(arguments, part.walk, part.depth_begin + step * TILE_DEPTH + i, part.depth_end);
    };
    auto load = [&](int step) {
        const Place *const depth = places + step % (TABLE / TILE_DEPTH) * TILE_DEPTH;
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int other = reading_a.other + i * reading_a.step;
#if A_BY_DEPTH
            const Place &row = row_places[other], &at = depth[reading_a.along];
#else
            const Place &row = a_row, &at = depth[other];
#endif
            a_read[i] = AVector();
            if (inside(part.size, row, at))
                a_read[i] = *reinterpret_cast<const AVector *>(a + (row.source + at.source));
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int other = i * reading_b.step;
#if B_BY_DEPTH
            const Place &at = depth[reading_b.along];
            const bool is_inside = exists(at) & (unsigned(other) < b_left);
            const storage *const from = b_column + (at.other + other * b_stride);
#else
            const Place &at = depth[reading_b.other + other];
            const bool is_inside = exists(at) & (b_left > 0);
            const storage *const from = b_column + at.other;
#endif
            b_read[i] = BVector();
            if (is_inside)
                b_read[i] = *reinterpret_cast<const BVector *>(from);
        }
    };
    auto fill = [&](int step) {
        compute *const a_tile = tiles + step % 2 * TILES, *const b_tile = a_tile + TILE_DEPTH * A_PITCH;
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i)
#pragma unroll
            for (int j = 0; j < A_VECTOR; ++j) {
                const int along = reading_a.along + j, other = reading_a.other + i * reading_a.step;
                a_tile[A_BY_DEPTH ? along * A_PITCH + other : other * A_PITCH + along] = widen(a_read[i].of[j]);
            }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
#pragma unroll
            for (int j = 0; j < B_VECTOR; ++j) {
                const int along = reading_b.along + j, other = reading_b.other + i * reading_b.step;
                b_tile[B_BY_DEPTH ? along * B_PITCH + other : other * B_PITCH + along] = widen(b_read[i].of[j]);
            }
    };

    const int thread_row = warp / (THREAD_GRID_COLUMNS / WARP_COLUMNS) * WARP_ROWS + lane / WARP_COLUMNS;
    const int thread_column = warp % (THREAD_GRID_COLUMNS / WARP_COLUMNS) * WARP_COLUMNS + lane % WARP_COLUMNS;
    compute sums[THREAD_ROWS][THREAD_COLUMNS] = {};
    auto multiply = [&](int step) {
        const compute *const a_tile = tiles + step % 2 * TILES + thread_row * CHUNK;
        const compute *const b_tile = tiles + step % 2 * TILES + TILE_DEPTH * A_PITCH + thread_column * CHUNK;
#pragma unroll
        for (int k = 0; k < TILE_DEPTH; ++k) {
            Chunk left[THREAD_ROWS / CHUNK], right[THREAD_COLUMNS / CHUNK];
#pragma unroll
            for (int i = 0; i < THREAD_ROWS / CHUNK; ++i)
                left[i] = *reinterpret_cast<const Chunk *>(a_tile + k * A_PITCH + i * PASS_ROWS);
#pragma unroll
            for (int j = 0; j < THREAD_COLUMNS / CHUNK; ++j)
                right[j] = *reinterpret_cast<const Chunk *>(b_tile + k * B_PITCH + j * PASS_COLUMNS);
#pragma unroll
            for (int i = 0; i < THREAD_ROWS; ++i)
#pragma unroll
                for (int j = 0; j < THREAD_COLUMNS; ++j)
                    sums[i][j] =
                        multiply_add(left[i / CHUNK].of[i % CHUNK], right[j / CHUNK].of[j % CHUNK], sums[i][j]);
        }
    };

    const int steps = int((part.depth_end - part.depth_begin + TILE_DEPTH - 1) / TILE_DEPTH);
    for (int step = -1; step < steps; ++step) {
        const int next = step + 1;
        if (next < steps) {
            if (next % (TABLE / TILE_DEPTH) == 0) {
                tabulate(next);
                __syncthreads();
            }
            load(next);
        }
        if (step >= 0)
            multiply(step);
        if (next < steps)
            fill(next);
        __syncthreads();
    }

#if PARTIALS
    c += (int64_t(part.split) * arguments.groups + part.group) * part.rows * part.columns;
    const int64_t c_stride = 1;
#else
    c += part.group * (WGRAD ? arguments.filter[0] : arguments.target[1]);
    const int64_t c_stride = WGRAD ? arguments.filter[1] : arguments.target[2];
#endif
    /* The result goes through shared memory, one chunk of rows of all threads at a time, so that stores are coalesced.
       */
    bool any_nan = false;
    auto element = [&](int pass, int i, int &row, int &column) {
        row = (C_BY_ROW ? i % PASS_ROWS : i / TILE_COLUMNS);
        column = (C_BY_ROW ? i / PASS_ROWS : i % TILE_COLUMNS);
        return part.row_begin + pass * PASS_ROWS + row < part.rows && part.column_begin + column < part.columns;
    };
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
        for (int i = 0; i < CHUNK; ++i)
#pragma unroll
            for (int j = 0; j < THREAD_COLUMNS; ++j)
                tiles[(thread_row * CHUNK + i) * (TILE_COLUMNS + 1) + j / CHUNK * PASS_COLUMNS + thread_column * CHUNK
                      + j % CHUNK] = sums[pass * CHUNK + i][j];
        __syncthreads();
        for (int i = thread; i < PASS_ROWS * TILE_COLUMNS; i += THREADS) {
            int row, column;
            if (!element(pass, i, row, column))
                continue;
            const compute sum = tiles[row * (TILE_COLUMNS + 1) + column];
            any_nan |= sum != sum;
            c[row_places[pass * PASS_ROWS + row].other + int64_t(part.column_begin + column) * c_stride] = rounded(sum);
        }
        __syncthreads();
    }
#if PADDED
    if (!any_nan)
        return;
    for (int pass = 0; pass < PASSES; ++pass)
        for (int i = thread; i < PASS_ROWS * TILE_COLUMNS; i += THREADS) {
            int row, column;
            if (!element(pass, i, row, column))
                continue;
            const Place &place = row_places[pass * PASS_ROWS + row];
            result &stored = c[place.other + int64_t(part.column_begin + column) * c_stride];
            const compute sum = exact(stored);
            if (sum != sum)
                stored = rounded(exact_sum(a, b + int64_t(part.column_begin + column) * b_stride, arguments, part.walk,
                                           part.size, place, part.depth_begin, part.depth_end));
        }
#endif
}
