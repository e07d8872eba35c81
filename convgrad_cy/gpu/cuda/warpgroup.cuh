/* A tile that groups of four warps multiply, on sm_90a: the layout of its operands in shared memory, and the pipeline.

   Group i has TILE_ROWS / WARPGROUPS rows from row i TILE_ROWS / WARPGROUPS on, and all columns. An instruction
   multiplies 64 rows by all columns for 16 depths. It reads both operands from shared memory, asynchronously. Rows of a
   stage have 128 bytes, 64 depths. The element of row r (or column r) and depth d is element i of the chunk at byte

       "by rows" (correlate):  128 r + 16 (d / 8 ^ r % 8),                                 i = d % 8
       "by depth" (wgrad):     128 (DEPTH (r / 64) + d) + 16 (r % 64 / 8 ^ d % 8),         i = r % 8

   of an operand that begins at a multiple of 1024. These are the layouts "128-byte swizzle" of the PTX ISA, K-major and
   MN-major. Copies write the 8 chunks of 128 bytes in any order. */
#ifndef CONVGRAD_WARPGROUP_CUH
#define CONVGRAD_WARPGROUP_CUH

#include "wgmma.cuh"

constexpr int GROUP_ROWS = TILE_ROWS / WARPGROUPS;
constexpr int ROW_PARTS = GROUP_ROWS / 64;
/* mma.cu stores the whole tile at a time. */
constexpr int WARP_ROWS = TILE_ROWS;

/* The sums of a thread: [64 rows][8 columns][4], where the four sums have the rows w, w, w + 8, w + 8 and the columns 2
   t, 2 t + 1, 2 t, 2 t + 1, with w = 16 (warp of the group) + lane / 4 and t = lane % 4. */
typedef sum_type Sums[ROW_PARTS][TILE_COLUMNS / 8][4];

__device__ inline int warp_row()
{
    return 0;
}

__device__ inline int chunk_by_rows(int row, int chunk)
{
    return row * 128 + (chunk ^ row % 8) * 16;
}

template <int extent> __device__ inline int chunk_by_depth(int depth, int chunk)
{
    return (chunk / 8 * DEPTH + depth) * 128 + (chunk % 8 ^ depth % 8) * 16;
}

/* The address of the first stage in a block's dynamic shared memory. */
__device__ inline unsigned char *first_stage(unsigned char *shared)
{
    return shared + (-reinterpret_cast<int64_t>(shared) & (ATOM_BYTES - 1));
}

__device__ inline void clear(Sums sums)
{
#pragma unroll
    for (int i = 0; i < ROW_PARTS; i++)
#pragma unroll
        for (int j = 0; j < TILE_COLUMNS / 8; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                sums[i][j][k] = 0;
}

/* Starts sums += the product of a stage. */
template <bool rows_by_depth, bool columns_by_depth>
__device__ inline void start_products(Sums sums, const unsigned char *stage)
{
    const int group = threadIdx.x / 128;
    constexpr int row_bytes = rows_by_depth ? 128 : SIZE, column_bytes = columns_by_depth ? 128 : SIZE; /* per depth */
    constexpr int part_bytes = rows_by_depth ? DEPTH * 128 : 64 * 128;
    begin_products();
#pragma unroll
    for (int depth = 0; depth < DEPTH; depth += 16)
#pragma unroll
        for (int i = 0; i < ROW_PARTS; i++)
            multiply_group<TILE_COLUMNS, rows_by_depth, columns_by_depth, DEPTH * 128>(
                element(), &sums[i][0][0], stage + (group * ROW_PARTS + i) * part_bytes + depth * row_bytes,
                stage + ROWS_BYTES + depth * column_bytes);
    end_products();
}

/* The pipeline: while two stages are multiplied, copies of STAGES - 2 stages are in flight. `copies` as in
   pipeline.cuh. A stage is overwritten when its products, two steps ago, have been formed by all groups: each group has
   waited for its own products before the barrier. */
template <bool by_depth, typename Copies>
__device__ inline void multiply_all(Sums sums, unsigned char *shared, int steps, Copies &copies)
{
    clear(sums);
#pragma unroll
    for (int step = 0; step < STAGES - 2; step++) {
        copies.prepare(step);
        __syncthreads();
        if (step < steps)
            copies.load(step, shared + step * STAGE_BYTES);
        end_copies();
    }
    copies.prepare(STAGES - 2);
    if (steps <= 0)
        return; /* not after the loop: there ptxas would assume that products still change the zeros */
    int read = 0, write = STAGES - 2;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        wait_copies<STAGES - 3>();
        show_copies();
        __syncthreads();
        start_products<by_depth, by_depth>(sums, shared + read * STAGE_BYTES);
        if (step + STAGES - 2 < steps)
            copies.load(step + STAGES - 2, shared + write * STAGE_BYTES);
        end_copies();
        copies.prepare(step + STAGES - 1);
        wait_products<1>();
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
    }
    wait_products<0>();
}

/* As in pipeline.cuh. */
template <typename Store> __device__ inline void for_sums(const Sums sums, Store store)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int first = threadIdx.x / 128 * GROUP_ROWS + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < ROW_PARTS; i++)
#pragma unroll
        for (int j = 0; j < TILE_COLUMNS / 8; j++)
#pragma unroll
            for (int k = 0; k < 4; k += 2)
                store(first + 64 * i + k * 4, 8 * j + lane % 4 * 2, &sums[i][j][k]);
}

#endif
