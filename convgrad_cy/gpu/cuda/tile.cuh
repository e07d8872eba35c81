/* A block's tile of a matrix product: the layout of its operands in shared memory, and the fragments of warps.

   Macros: ELEMENT (bf16, f16 or double); TILE_ROWS, TILE_COLUMNS; STAGES; PLANES: an operand is the sum of PLANES
   tensors of ELEMENT, so that bf16 can represent float (pack.cu); WARPGROUPS: 0 if single warps multiply, as in this
   file, otherwise the number of groups of four warps, whose layout is in warpgroup.cuh. A *stage* holds the operands
   that are multiplied between two barriers, DEPTH terms of each sum:

       stage = PLANES x (TILE_ROWS x DEPTH), PLANES x (TILE_COLUMNS x DEPTH)

   With CHUNK elements in 16 bytes, the element of row r (or column r) and depth d is element i of the chunk at byte

       "by rows" (correlate):  64 r + 16 (d / CHUNK ^ twist(r)),             i = d % CHUNK
       "by depth" (wgrad):     SIZE extent d + 16 (r / CHUNK ^ twist(d)),    i = r % CHUNK

   Twists avoid all bank conflicts. 128 bytes, all banks, are 8 chunks: two rows of 64 bytes, or part of one depth. An
   ldmatrix phase reads the same chunk c of 8 consecutive rows (by depth: of 8 depths). By rows, row r uses half r % 2
   of the 128 bytes, and in it place c ^ (r / 2 % 4), so 8 rows use 8 different places. By depth, c ^ (d % 8) does this.
   Doubles are read by 16 lanes at a time, 8 bytes each: by rows, 2 neighbouring chunks of 4 rows, which the twists 0
   and 2 separate; by depth, 2 chunks of 4 depths, which the twists 0, 2, 4, 6 separate. Copies write the 8 chunks of
   128 bytes in any order. */
#ifndef CONVGRAD_TILE_CUH
#define CONVGRAD_TILE_CUH

#include "convgrad/problem.h"
#include "ptx.cuh"

typedef ELEMENT element;
typedef compute_of<element>::type sum_type;

template <typename Element> struct operands_of {
    typedef unsigned word;
    static constexpr int instruction_depth = 16;
};
template <> struct operands_of<double> {
    typedef double word;
    static constexpr int instruction_depth = 8;
};
typedef operands_of<element>::word word;

constexpr int SIZE = sizeof(element);
constexpr int CHUNK = 16 / SIZE;
constexpr int ROW_BYTES = WARPGROUPS ? 128 : 64; /* of a stage */
constexpr int DEPTH = ROW_BYTES / SIZE;
constexpr int THREADS = WARPGROUPS ? 128 * WARPGROUPS : 128;
constexpr int ROWS_BYTES = TILE_ROWS * ROW_BYTES;
constexpr int COLUMNS_BYTES = TILE_COLUMNS * ROW_BYTES;
constexpr int STAGE_BYTES = PLANES * (ROWS_BYTES + COLUMNS_BYTES);

/* Strides of a tensor, in elements. */
struct strides {
    int64_t batch, group, channel, axis[3];
};

/* The sum of a value's planes, the smallest plane first. */
__device__ inline sum_type whole(const element *value, int64_t plane)
{
    sum_type sum = 0;
#pragma unroll
    for (int i = PLANES - 1; i >= 0; i--)
        sum += widen(value[i * plane]);
    return sum;
}

__device__ inline bool is_finite(sum_type value)
{
    return value - value == 0;
}

#if WARPGROUPS
#include "warpgroup.cuh"
#else
/* Four warps in a grid of 4 x 1, 2 x 2 or 1 x 4, so that their tiles are nearly square. */
constexpr int WARPS_ACROSS = TILE_COLUMNS > 2 * TILE_ROWS ? 4 : 2 * TILE_COLUMNS > TILE_ROWS ? 2 : 1;
constexpr int WARP_ROWS = TILE_ROWS * WARPS_ACROSS / 4;
constexpr int WARP_COLUMNS = TILE_COLUMNS / WARPS_ACROSS;
constexpr int ROW_PARTS = WARP_ROWS / 16;            /* an instruction has 16 rows */
constexpr int COLUMN_PARTS = WARP_COLUMNS / 8;       /* and 8 columns */
constexpr int COLUMN_PAIRS = (COLUMN_PARTS + 1) / 2; /* parts are loaded in pairs; the last may be single */

/* The sums of a thread. */
typedef sum_type Sums[ROW_PARTS][COLUMN_PARTS][4];

__device__ inline int warp_row()
{
    return threadIdx.x / 32 / WARPS_ACROSS * WARP_ROWS;
}

__device__ inline int warp_column()
{
    return threadIdx.x / 32 % WARPS_ACROSS * WARP_COLUMNS;
}

/* Offset of a chunk in a tile, in bytes: by rows, and by depth. */
__device__ inline int chunk_by_rows(int row, int chunk)
{
    const int twist = SIZE == 8 ? row & 2 : row / 2 % 4;
    return row * 64 + (chunk ^ twist) * 16;
}

template <int extent> __device__ inline int chunk_by_depth(int depth, int chunk)
{
    const int twist = SIZE == 8 ? depth % 4 * 2 : depth % 8;
    return depth * (extent * SIZE) + (chunk ^ twist) * 16;
}

/* Addresses of a lane's part of fragments, which have 16 rows or 16 columns (8 if no more are left). `offset` is the
   address for the first fragment at depth 0, computed before the loop. Other fragments and depths only add a multiple
   or flip bits of the chunk's number: no carry reaches these bits, and a twist also only flips them. */
template <bool by_depth, int extent> struct Fragments {
    int offset;

    /* For a 16-bit type, `offset` is the address that the lane gives to ldmatrix. Its matrices are ordered by 8 rows,
       then by 8 depths; for columns by 8 depths, then by 8 columns. For doubles, `offset` is the address of the first
       word. */
    __device__ inline Fragments(int first, bool columns)
    {
        const int lane = threadIdx.x % 32, low = lane / 8 % 2, high = lane / 16;
        const int row = SIZE == 8 ? lane / 4 : lane % 8 + (columns ? high : low) * 8;
        const int depth = SIZE == 8 ? lane % 4 : (columns ? low : high) * 8;
        if (SIZE == 8)
            offset = by_depth ? chunk_by_depth<extent>(depth, (first + row) / 2) + row % 2 * 8
                              : chunk_by_rows(first + row, depth / 2) + depth % 2 * 8;
        else
            offset = by_depth ? chunk_by_depth<extent>(depth + lane % 8, (first + row) / 8)
                              : chunk_by_rows(first + row, depth / 8);
    }

    template <typename Element>
    __device__ inline void
    load(Element, unsigned r[4], const unsigned char *tile, int number, int depth, bool, bool half = false) const
    {
        if (by_depth)
            load_matrices_transposed(r, tile + depth * (extent * SIZE) + (offset ^ number * 32));
        else if (half)
            load_two_matrices(r, tile + number * (16 * 64) + (offset ^ depth * 2));
        else
            load_matrices(r, tile + number * (16 * 64) + (offset ^ depth * 2));
    }

    __device__ inline void
    load(double, double r[4], const unsigned char *tile, int number, int, bool columns, bool half = false) const
    {
#pragma unroll
        for (int i = 0; i < (half ? 2 : 4); i++) {
            const int row = columns ? i / 2 : i % 2, depth = columns ? i % 2 : i / 2; /* in units of 8 and of 4 */
            const int byte = by_depth ? number * 128 + depth * (4 * extent * 8) + (offset ^ row * 64)
                                      : number * (16 * 64) + row * (8 * 64) + (offset ^ depth * 32);
            r[i] = *reinterpret_cast<const double *>(tile + byte);
        }
    }
};

/* The fragments of both operands of a warp. */
template <bool by_depth> struct Operands {
    Fragments<by_depth, TILE_ROWS> rows;
    Fragments<by_depth, TILE_COLUMNS> columns;

    __device__ inline Operands() : rows(warp_row(), false), columns(warp_column(), true)
    {
    }
};

typedef word RowWords[ROW_PARTS][4];
typedef word ColumnWords[COLUMN_PAIRS][4];

/* Loads a warp's fragments of one plane, for the depths of one instruction. For columns, the last two words belong to
   the second 8 of 16 columns. */
template <bool by_depth>
__device__ inline void
load_rows(RowWords words, const Operands<by_depth> &operands, const unsigned char *stage, int plane, int depth)
{
#pragma unroll
    for (int i = 0; i < ROW_PARTS; i++)
        operands.rows.load(element(), words[i], stage + plane * ROWS_BYTES, i, depth, false);
}

template <bool by_depth>
__device__ inline void
load_columns(ColumnWords words, const Operands<by_depth> &operands, const unsigned char *stage, int plane, int depth)
{
    const unsigned char *tile = stage + PLANES * ROWS_BYTES + plane * COLUMNS_BYTES;
#pragma unroll
    for (int i = 0; i < COLUMN_PAIRS; i++)
        operands.columns.load(element(), words[i], tile, i, depth, true, 2 * i + 1 == COLUMN_PARTS);
}

/* The address of the first stage in a block's dynamic shared memory. */
__device__ inline unsigned char *first_stage(unsigned char *shared)
{
    return shared;
}
#endif

#endif
