/* The pipeline whose stages the copy engine (TMA) fills: a ring of stages in shared memory, each with two mbarriers.

   One producer thread starts the copies, stage after stage, as far ahead as the ring is long. Before it fills a stage
   again, it waits only for the products of that stage. A stage is filled when all of its bytes have arrived. It is
   empty when every multiplying warp has finished its products. */
#ifndef CONVGRAD_RING_CUH
#define CONVGRAD_RING_CUH

#include "engine.cuh"
#include "tile.cuh"

/* The multiplying threads come first, then the group of the producer thread. */
constexpr int ALL_THREADS = ENGINE ? THREADS + 128 : THREADS;

#if ENGINE

struct Ring {
    Meter filled[STAGES], emptied[STAGES];

    /* Initializes the mbarriers. The block needs a barrier afterwards. */
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

/* The next stage, and the parity of the round through the ring. */
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

/* Registers of a thread: at the start (REGISTERS), then of the producer's group (FEW), which gives registers to the
   multiplying threads (MANY). */
constexpr int REGISTERS = 65536 / (ALL_THREADS * BLOCKS) / 8 * 8;
constexpr int FEW_REGISTERS = 40;
constexpr int MANY_REGISTERS = (REGISTERS * ALL_THREADS - FEW_REGISTERS * 128) / THREADS / 8 * 8;

/* Whether this thread multiplies. In the other group, the first thread is the producer. */
__device__ inline bool multiplies()
{
    return threadIdx.x < THREADS;
}

/* The loop of the producer thread. boxes.load(stage, meter) starts the copies of the next stage, STAGE_BYTES. */
template <typename Boxes>
__device__ inline void fill(Ring &ring, Turn &turn, unsigned char *shared, int steps, Boxes &boxes)
{
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        wait_phase(&ring.emptied[turn.stage], turn.parity ^ 1); /* of the previous round; ended in the first */
        arrive_and_expect(&ring.filled[turn.stage], STAGE_BYTES);
        boxes.load(shared + turn.stage * STAGE_BYTES, &ring.filled[turn.stage]);
        turn.advance();
    }
}

/* The loop of the multiplying threads: sums = the products of `steps` stages. `meanwhile` is called once, while the
   tensor cores multiply. */
template <bool rows_by_depth, bool columns_by_depth, typename Meanwhile>
__device__ inline void
multiply_filled(Sums sums, Ring &ring, Turn &turn, unsigned char *shared, int steps, Meanwhile meanwhile)
{
    clear(sums);
    if (steps <= 0) {
        meanwhile();
        return; /* as in warpgroup.cuh */
    }
    const bool speaks = threadIdx.x % 32 == 0; /* arrives for its warp */
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

/* A barrier of the multiplying threads; returns whether any of them votes true. */
__device__ inline bool vote_of_multipliers(bool vote)
{
#if ENGINE
    return vote_of<THREADS>(vote);
#else
    return __syncthreads_or(vote);
#endif
}

#endif
