// The prelude with which g++ compiles the .cu text that NVRTC compiles for a GPU: CUDA's words in terms of fibers.
//
// A kernel may assume only the promises of the programming model, and the simulator gives no more. A warp runs as far as
// it can before another warp moves, in an order that the launch chooses (scheduler.cpp). Data of cp.async are poison
// until a wait_group that covers them (async.cpp). Shared memory is poison when a block begins. A barrier that not all
// threads reach is an error.
#pragma once

#define CONVGRAD_SIMULATOR 1

#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

using std::fabs;
using std::fma;
using std::fmaf;

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
// The most threads of a block are kept, so that the launch can be checked (launch.hpp). An empty declaration between the
// kernel's type and its name makes room for them.
#define __launch_bounds__(threads, ...)                                                                                \
    simulator_declared();                                                                                              \
    static const int64_t SIMULATOR_NAME(simulator_threads_, __LINE__)                                                  \
        __attribute__((used, section("simulator_threads"))) = threads;                                                 \
    extern "C" void
#define SIMULATOR_NAME(name, line) SIMULATOR_JOINED(name, line)
#define SIMULATOR_JOINED(name, line) name##line
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__
// Poisoned before each block. Templates cannot have it: use DYNAMIC_SHARED there.
#define __shared__ static __attribute__((section("simulator_shared")))
// Dynamic shared memory: the bytes that the launch requested, aligned to 128 and no more.
#define DYNAMIC_SHARED(name) unsigned char *const name = simulator::dynamic_shared()

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
#define SIMULATOR_VECTORS(scalar, name)                                                                                \
    struct alignas(2 * sizeof(scalar)) name##2                                                                         \
    {                                                                                                                  \
        scalar x, y;                                                                                                   \
    };                                                                                                                 \
    struct alignas(4 * sizeof(scalar) < 16 ? 4 * sizeof(scalar) : 16) name##4                                          \
    {                                                                                                                  \
        scalar x, y, z, w;                                                                                             \
    };                                                                                                                 \
    inline name##2 make_##name##2(scalar x, scalar y)                                                                  \
    {                                                                                                                  \
        return {x, y};                                                                                                 \
    }                                                                                                                  \
    inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w)                                              \
    {                                                                                                                  \
        return {x, y, z, w};                                                                                           \
    }
SIMULATOR_VECTORS(float, float)
SIMULATOR_VECTORS(double, double)
SIMULATOR_VECTORS(int, int)
SIMULATOR_VECTORS(unsigned, uint)
SIMULATOR_VECTORS(short, short)
SIMULATOR_VECTORS(unsigned short, ushort)
SIMULATOR_VECTORS(long long, longlong)
SIMULATOR_VECTORS(unsigned long long, ulonglong)
SIMULATOR_VECTORS(signed char, char)
SIMULATOR_VECTORS(unsigned char, uchar)
#undef SIMULATOR_VECTORS

namespace simulator
{
extern uint3 thread_index, block_index;
extern dim3 block_size, grid_size;

unsigned char *dynamic_shared();
// Waits for all threads of the block, or for `expected` threads at one of its other barriers. Returns whether any of them
// brought a vote.
bool block_barrier(const char *file, int line, bool vote = false, int barrier = 0, int expected = 0);
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The lanes of `mask` meet. Each brings 8 bytes and receives the bytes of all.
void exchange(unsigned mask, const char *name, uint64_t mine, uint64_t all[32]);
int lane();
} // namespace simulator

#define threadIdx simulator::thread_index
#define blockIdx simulator::block_index
#define blockDim simulator::block_size
#define gridDim simulator::grid_size
#define warpSize 32
#define __syncthreads() simulator::block_barrier(__FILE__, __LINE__)
#define __syncthreads_or(vote) int(simulator::block_barrier(__FILE__, __LINE__, (vote) != 0))

// ---- For ptx.cuh: the PTX instructions of these names. All 32 lanes call the warp-wide ones together. ----

// mma.sync.aligned.m16n8k16.row.col: d += a b in float32, rounded toward zero once (as tensor cores truncate).
void sim_mma_m16n8k16_bf16(float d[4], const uint32_t a[4], const uint32_t b[2]);
void sim_mma_m16n8k16_f16(float d[4], const uint32_t a[4], const uint32_t b[2]);
// mma.sync.aligned.m16n8k8.row.col of two registers of a and one of b.
void sim_mma_m16n8k8_bf16(float d[4], const uint32_t a[2], const uint32_t b[1]);
void sim_mma_m16n8k8_f16(float d[4], const uint32_t a[2], const uint32_t b[1]);
// mma.sync.aligned.*.f64: sums in float64, in the order of k.
void sim_mma_m8n8k4_f64(double d[2], double a, double b);
void sim_mma_m16n8k4_f64(double d[4], const double a[2], const double b[1]);
void sim_mma_m16n8k8_f64(double d[4], const double a[4], const double b[2]);
void sim_mma_m16n8k16_f64(double d[4], const double a[8], const double b[4]);
// ldmatrix.sync.aligned.m8n8.x4/.x2[.trans].shared.b16: each lane gives the (generic) address of one row of 16 bytes.
void sim_ldmatrix_x4(uint32_t r[4], const void *row);
void sim_ldmatrix_x4_trans(uint32_t r[4], const void *row);
void sim_ldmatrix_x2(uint32_t r[2], const void *row);
void sim_ldmatrix_x2_trans(uint32_t r[2], const void *row);
// cp.async.ca/cg.shared.global, 16, 8 or 4 bytes wide: `bytes` of them are read, the rest of the width is filled with
// zeros. Both addresses (generic) must be aligned to the width, even if bytes is 0 and nothing is read.
void sim_cp_async_16(void *shared, const void *global, int bytes);
void sim_cp_async_8(void *shared, const void *global, int bytes);
void sim_cp_async_4(void *shared, const void *global, int bytes);
// cp.async.commit_group, and cp.async.wait_group: this thread's data have arrived, except for the `left` newest groups.
void sim_cp_async_commit();
void sim_cp_async_wait(int left);
// wgmma.mma_async.sync.aligned.m64n<columns>k16 of operands in shared memory with the 128-byte swizzle, K-major or
// MN-major ("by depth": 64 rows further is `leading` bytes further); commit_group, wait_group, and both fences.
void sim_wgmma_m64k16_bf16(float *sums, int columns, bool rows_by_depth, bool columns_by_depth, int leading,
                           const void *rows, const void *across);
void sim_wgmma_m64k16_f16(float *sums, int columns, bool rows_by_depth, bool columns_by_depth, int leading,
                          const void *rows, const void *across);
void sim_wgmma_fence();
void sim_wgmma_commit();
void sim_wgmma_wait(int left);
void sim_fence_proxy_async();
// barrier.red.or of `threads` threads.
bool sim_barrier_or(int barrier, int threads, bool vote);
// mbarrier.init, fence.mbarrier_init, mbarrier.arrive, .arrive.expect_tx, and .try_wait.parity until it succeeds.
void sim_mbarrier_init(void *meter, int arrivals);
void sim_fence_mbarrier_init();
void sim_mbarrier_arrive(void *meter);
void sim_mbarrier_arrive_expect_tx(void *meter, int bytes);
void sim_mbarrier_wait(void *meter, unsigned parity);
// cp.async.bulk.tensor of a tiled map of rank 5, and of an im2col map with `axes` spatial axes, the last ones of `place`.
void sim_tensor_copy(void *shared, const void *map, void *meter, const int at[5]);
void sim_tensor_copy_im2col(void *shared, const void *map, void *meter, int axes, int channel, const int place[3],
                            int image, const int offset[3]);
float sim_float_of_half(uint16_t bits);
float sim_float_of_bfloat16(uint16_t bits);

#include "device_functions.hpp"
