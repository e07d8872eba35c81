/* The copy engine of sm_90 (TMA), as functions, like ptx.cuh and wgmma.cuh for other instructions.

   One thread starts the copy of a box of a tensor, which a *tensor map* (tensor_map.py) describes. The engine computes
   the addresses and writes zeros for elements outside the tensor. A row of the box has 128 bytes of channels; its chunk
   c is stored at chunk c ^ row % 8. This is the layout of wgmma.cuh if the box begins at a multiple of ATOM_BYTES.

   A *meter* is an mbarrier in shared memory. It counts arrivals of threads and outstanding bytes of boxes. Its phase
   ends when all have arrived, and the next phase begins. Phases have the parities 0, 1, 0, ...; the phase before the
   first one has parity 1 and counts as ended. */
#ifndef CONVGRAD_ENGINE_CUH
#define CONVGRAD_ENGINE_CUH

#include "ptx.cuh"

struct alignas(64) TensorMap {
    unsigned char opaque[128];
};

typedef unsigned long long Meter;

/* Initializes an mbarrier for `arrivals` arrivals. One thread calls this, then show_meters(). After a barrier, other
   threads and the engine may use the mbarrier. */
__device__ inline void make_meter(Meter *meter, int arrivals)
{
#ifdef CONVGRAD_SIMULATOR
    sim_mbarrier_init(meter, arrivals);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(meter)), "r"(arrivals) : "memory");
#endif
}

__device__ inline void show_meters()
{
#ifdef CONVGRAD_SIMULATOR
    sim_fence_mbarrier_init();
#else
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ inline void arrive(Meter *meter)
{
#ifdef CONVGRAD_SIMULATOR
    sim_mbarrier_arrive(meter);
#else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(meter)) : "memory");
#endif
}

/* Arrives, and makes the phase wait for `bytes` bytes. */
__device__ inline void arrive_and_expect(Meter *meter, int bytes)
{
#ifdef CONVGRAD_SIMULATOR
    sim_mbarrier_arrive_expect_tx(meter, bytes);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(meter)), "r"(bytes)
                 : "memory");
#endif
}

/* Waits until the phase of this parity, the current or the previous one, has ended. Afterwards this thread sees the
   bytes that came in this phase, and the writes of other threads before they arrived. */
__device__ inline void wait_phase(Meter *meter, unsigned parity)
{
#ifdef CONVGRAD_SIMULATOR
    sim_mbarrier_wait(meter, parity);
#else
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}\n" ::"r"(shared_address(meter)),
                 "r"(parity)
                 : "memory");
#endif
}

/* Starts the copy of a box of rank 5 that begins at the coordinates at[], innermost axis first. */
__device__ inline void copy_box(void *shared, const TensorMap &map, Meter *meter, const int at[5])
{
#ifdef CONVGRAD_SIMULATOR
    sim_tensor_copy(shared, &map, meter, at);
#else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(shared)),
                 "l"(&map), "r"(shared_address(meter)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
                 : "memory");
#endif
}

/* Starts an im2col copy with `axes` spatial axes, the last ones. It begins at the pixel place[] of `image`, and pixels
   follow one another within the map's corners. Each row is read from the pixel `offset` further. */
__device__ inline void copy_pixels(void *shared, const TensorMap &map, Meter *meter, int axes, int channel,
                                   const int place[3], int image, const int offset[3])
{
#ifdef CONVGRAD_SIMULATOR
    sim_tensor_copy_im2col(shared, &map, meter, axes, channel, place, image, offset);
#else
    const unsigned to = shared_address(shared), counts = shared_address(meter);
    if (axes == 2)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
                     "l"(&map), "r"(counts), "r"(channel), "r"(place[2]), "r"(place[1]), "r"(image),
                     "h"((unsigned short)offset[2]), "h"((unsigned short)offset[1])
                     : "memory");
    else if (axes == 3)
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(to),
                     "l"(&map), "r"(counts), "r"(channel), "r"(place[2]), "r"(place[1]), "r"(place[0]), "r"(image),
                     "h"((unsigned short)offset[2]), "h"((unsigned short)offset[1]), "h"((unsigned short)offset[0])
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(to),
                     "l"(&map), "r"(counts), "r"(channel), "r"(place[2]), "r"(image), "h"((unsigned short)offset[2])
                     : "memory");
#endif
}

/* Changes the number of registers of each thread in a group of four warps: to more, as soon as other groups have given
   theirs, or to fewer. */
template <int count> __device__ inline void take_registers()
{
#ifndef CONVGRAD_SIMULATOR
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
#endif
}

template <int count> __device__ inline void give_registers()
{
#ifndef CONVGRAD_SIMULATOR
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
#endif
}

/* A barrier of `threads` threads (whole warps); returns whether any of them votes true. */
template <int threads> __device__ inline bool vote_of(bool vote)
{
#ifdef CONVGRAD_SIMULATOR
    return sim_barrier_or(1, threads, vote);
#else
    int any;
    asm volatile("{\n.reg .pred mine, one;\n"
                 "setp.ne.s32 mine, %1, 0;\n"
                 "barrier.red.or.pred.aligned one, 1, %2, mine;\n"
                 "selp.s32 %0, 1, 0, one;\n}\n"
                 : "=r"(any)
                 : "r"(int(vote)), "n"(threads)
                 : "memory");
    return any;
#endif
}

#endif
