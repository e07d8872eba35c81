/* The pipeline whose stages the copy engine fills: a ring of them in shared memory, each with two meters.

   One thread more than those that multiply asks for boxes, stage after stage, as far ahead as the ring is long; it waits
   for no products but those of the stage that it is going to fill. A stage is filled when all of its bytes have come, and
   empty when every warp has waited for its products. */
#ifndef CONVGRAD_RING_CUH
#define CONVGRAD_RING_CUH

#include "engine.cuh"
#include "tile.cuh"

/* The group of the thread that asks comes after those that multiply. */
constexpr int ALL_THREADS = ENGINE ? THREADS + 128 : THREADS;

#if ENGINE

struct Ring {
    Meter filled[STAGES], emptied[STAGES];

    /* Before a barrier of the block. */
    __device__ inline void make()
    {
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                make_meter(&filled[i], 1);
                make_meter(&emptied[i], THREADS / 32);
            }
            show_meters();
        }
    }
};

/* The next stage, and in which round through the ring. */
struct Turn {
    int stage = 0;
    unsigned parity = 0;

    __device__ inline void advance()
    {
        stage++;
        if (stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* Registers of each thread that multiplies, and of the others, which give them theirs: all have as many at first. */
constexpr int REGISTERS = 65536 / (ALL_THREADS * BLOCKS) / 8 * 8;
constexpr int FEW_REGISTERS = 40;
constexpr int MANY_REGISTERS = (REGISTERS * ALL_THREADS - FEW_REGISTERS * 128) / THREADS / 8 * 8;

/* Whether this thread multiplies. If not, the first one of its group asks. */
__device__ inline bool multiplies()
{
    return threadIdx.x < THREADS;
}

/* What the thread that asks does. `boxes` has load(stage, meter), which starts the copies of the stages one after another,
   STAGE_BYTES each. */
template <typename Boxes>
__device__ inline void fill(Ring &ring, Turn &turn, unsigned char *shared, int steps, Boxes &boxes)
{
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        wait_phase(&ring.emptied[turn.stage], turn.parity ^ 1); /* of the round before, and at first of none */
        arrive_and_expect(&ring.filled[turn.stage], STAGE_BYTES);
        boxes.load(shared + turn.stage * STAGE_BYTES, &ring.filled[turn.stage]);
        turn.advance();
    }
}

/* What the others do: sums = the products of so many stages. `meanwhile` is called once, while products are formed. */
template <bool rows_by_depth, bool columns_by_depth, typename Meanwhile>
__device__ inline void
multiply_filled(Sums sums, Ring &ring, Turn &turn, unsigned char *shared, int steps, Meanwhile meanwhile)
{
    clear(sums);
    if (steps <= 0) {
        meanwhile();
        return; /* as in warpgroup.cuh */
    }
    const bool speaks = threadIdx.x % 32 == 0; /* for its warp */
    int before = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        wait_phase(&ring.filled[turn.stage], turn.parity);
        start_products<rows_by_depth, columns_by_depth>(sums, shared + turn.stage * STAGE_BYTES);
        if (step == 0)
            meanwhile();
        wait_products<1>();
        if (step > 0 && speaks)
            arrive(&ring.emptied[before]);
        before = turn.stage;
        turn.advance();
    }
    wait_products<0>();
    if (speaks)
        arrive(&ring.emptied[before]);
}

#endif

/* Whether any thread that multiplies has a vote, at a barrier of theirs. */
__device__ inline bool vote_of_multipliers(bool vote)
{
#if ENGINE
    return vote_of<THREADS>(vote);
#else
    return __syncthreads_or(vote);
#endif
}

#endif
