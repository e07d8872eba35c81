/* The software pipeline of a tile: one stage is multiplied while copies of later stages are in flight. */
#ifndef CONVGRAD_PIPELINE_CUH
#define CONVGRAD_PIPELINE_CUH

#include "tile.cuh"

#if !WARPGROUPS

__device__ inline void add_products(Sums sums, const RowWords a, const ColumnWords b)
{
#pragma unroll
    for (int i = 0; i < ROW_PARTS; i++)
#pragma unroll
        for (int j = 0; j < COLUMN_PARTS; j++)
            multiply(element(), sums[i][j], a[i], b[j / 2] + j % 2 * 2);
}

/* sums += the product of a stage. With x = x0 + x1 + x2 and |x1| <= |x0| / 256 and so on, three planes skip the
   products x1 y2, x2 y1, x2 y2, which are at most 2^-24 of x y. Two planes skip x1 y1, which is at most 2^-16 of x y.
   `between` is called while tensor cores have work to do. */
template <bool by_depth, typename Between>
__device__ inline void
add_stage(Sums sums, const Operands<by_depth> &operands, const unsigned char *stage, Between between)
{
    constexpr int instruction = operands_of<element>::instruction_depth, instructions = DEPTH / instruction;
    if constexpr (PLANES == 1) {
        RowWords a[instructions];
        ColumnWords b[instructions];
#pragma unroll
        for (int i = 0; i < instructions; i++) {
            load_rows(a[i], operands, stage, 0, i * instruction);
            load_columns(b[i], operands, stage, 0, i * instruction);
        }
#pragma unroll
        for (int i = 0; i < instructions; i++) {
            add_products(sums, a[i], b[i]);
            if (i == 0)
                between();
        }
    } else {
#pragma unroll
        for (int depth = 0; depth < DEPTH; depth += instruction) {
            RowWords a0, a1, a2;
            ColumnWords b0, b1, b2;
            load_rows(a0, operands, stage, 0, depth);
            load_columns(b0, operands, stage, 0, depth);
            load_columns(b1, operands, stage, 1, depth);
            add_products(sums, a0, b0);
            if (depth == 0)
                between();
            load_rows(a1, operands, stage, 1, depth);
            add_products(sums, a0, b1);
            add_products(sums, a1, b0);
            if constexpr (PLANES > 2) {
                load_columns(b2, operands, stage, 2, depth);
                add_products(sums, a1, b1);
                load_rows(a2, operands, stage, 2, depth);
                add_products(sums, a0, b2);
                add_products(sums, a2, b0);
            }
        }
    }
}

__device__ inline void clear(Sums sums)
{
#pragma unroll
    for (int i = 0; i < ROW_PARTS; i++)
#pragma unroll
        for (int j = 0; j < COLUMN_PARTS; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                sums[i][j][k] = 0;
}

/* Tensor cores truncate float sums, and the error grows with the number of additions. If an operand has several planes,
   the result must be as exact as float: so the sums of PROMOTION stages are added to totals by instructions that round.
   */
constexpr int PROMOTION = 2;

__device__ inline void promote(Sums totals, Sums sums)
{
#pragma unroll
    for (int i = 0; i < ROW_PARTS; i++)
#pragma unroll
        for (int j = 0; j < COLUMN_PARTS; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                totals[i][j][k] += sums[i][j][k];
    clear(sums);
}

/* The pipeline: while one stage is multiplied, copies of the next STAGES - 1 are in flight. copies.load(step, stage)
   starts the copies of one stage; it is called for the steps 0, 1, ... in this order, each time after a barrier. */
template <bool by_depth, typename Copies>
__device__ inline void multiply_all(Sums totals, unsigned char *shared, int steps, Copies &copies)
{
    const Operands<by_depth> operands;
    clear(totals);
#pragma unroll
    for (int step = 0; step < STAGES - 1; step++) {
        copies.prepare(step);
        __syncthreads();
        if (step < steps)
            copies.load(step, shared + step * STAGE_BYTES);
        end_copies();
    }
    copies.prepare(STAGES - 1);
    Sums sums;
    if constexpr (PLANES > 1)
        clear(sums);
    int read = 0, write = STAGES - 1;
    for (int step = 0; step < steps; step++) {
        wait_copies<STAGES - 2>();
        __syncthreads(); /* all threads see this stage and have finished the previous one, which is overwritten next */
        const auto start_copies = [&] {
            if (step + STAGES - 1 < steps)
                copies.load(step + STAGES - 1, shared + write * STAGE_BYTES);
            end_copies();
            copies.prepare(step + STAGES);
        };
        add_stage(PLANES > 1 ? sums : totals, operands, shared + read * STAGE_BYTES, start_copies);
        if (PLANES > 1 && step % PROMOTION == PROMOTION - 1)
            promote(totals, sums);
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
    }
    if constexpr (PLANES > 1)
        promote(totals, sums);
}

/* Calls store(row of the tile, column of the tile, pointer to two sums in neighbouring columns) for the thread's sums.
   */
template <typename Store> __device__ inline void for_sums(const Sums sums, Store store)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ROW_PARTS; i++)
#pragma unroll
        for (int j = 0; j < COLUMN_PARTS; j++)
#pragma unroll
            for (int k = 0; k < 4; k += 2)
                store(warp_row() + 16 * i + lane / 4 + k * 4, warp_column() + 8 * j + lane % 4 * 2, &sums[i][j][k]);
}
#endif

#endif
