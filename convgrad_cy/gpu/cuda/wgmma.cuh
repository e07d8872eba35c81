/* Matrix products of four warps together (wgmma), on sm_90a, as functions, like ptx.cuh for other instructions.

   sums (64 x columns) += rows (64 x 16) by columns (16 x columns): operands have a 16-bit type, sums are float. With
   w = 16 (warp of the group) + lane / 4 and t = lane % 4, a lane holds

       sums[i]: row w + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2

   Operands are in shared memory, in atoms of 1024 bytes: 8 rows of 64 depths ("K-major"), or 8 depths of 64 rows
   ("MN-major"), 128 bytes each. Chunk c of row (depth) i is at place c ^ i. K-major atoms follow one another by rows.
   MN-major atoms follow one another by depths; the next 64 rows are `leading` bytes further. */
#ifndef CONVGRAD_WGMMA_CUH
#define CONVGRAD_WGMMA_CUH

#include "ptx.cuh"

constexpr int ATOM_BYTES = 1024;

#ifndef CONVGRAD_SIMULATOR
/* "Matrix descriptor" of the PTX ISA: address, leading and stride offset in units of 16 bytes, 128-byte swizzle. */
__device__ inline unsigned long long described(const void *operand, int leading)
{
    return (shared_address(operand) & 0x3FFFF) >> 4 | (unsigned long long)(leading >> 4) << 16
           | (unsigned long long)(ATOM_BYTES >> 4) << 32 | 1ull << 62;
}

/* Names of registers, in tens, and the operands that they stand for. */
#define NAMES_10(tens)                                                                                                 \
    "%" #tens "0,%" #tens "1,%" #tens "2,%" #tens "3,%" #tens "4,%" #tens "5,%" #tens "6,%" #tens "7,%" #tens          \
    "8,%" #tens "9,"
#define NAMES_30 NAMES_10() NAMES_10(1) NAMES_10(2)
#define NAMES_60 NAMES_30 NAMES_10(3) NAMES_10(4) NAMES_10(5)
#define NAMES_90 NAMES_60 NAMES_10(6) NAMES_10(7) NAMES_10(8)
#define NAMES_120 NAMES_60 NAMES_10(6) NAMES_10(7) NAMES_10(8) NAMES_10(9) NAMES_10(10) NAMES_10(11)
#define SUMS_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUMS_32 SUMS_16(0), SUMS_16(16)
#define SUMS_64 SUMS_32, SUMS_16(32), SUMS_16(48)
#define SUMS_96 SUMS_64, SUMS_16(64), SUMS_16(80)
#define SUMS_128 SUMS_64, SUMS_16(64), SUMS_16(80), SUMS_16(96), SUMS_16(112)
/* `names` of the sums; the next arguments are the numbers of the operands after them. */
#define WGMMA(columns, type, names, a, b, one, turned_a, turned_b, sums)                                               \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " one ", 0;\n"                                                      \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #type "." #type " {" names "}, " a ", " b     \
                 ", p, 1, 1, " turned_a ", " turned_b ";\n}\n"                                                         \
                 : sums                                                                                                \
                 : "l"(described(rows, leading)), "l"(described(across, leading)), "r"(1), "n"(int(rows_by_depth)),    \
                   "n"(int(columns_by_depth))                                                                          \
                 : "memory")
#define WGMMA_64(type) WGMMA(64, type, NAMES_30 "%30,%31", "%32", "%33", "%34", "%35", "%36", SUMS_32)
#define WGMMA_128(type) WGMMA(128, type, NAMES_60 "%60,%61,%62,%63", "%64", "%65", "%66", "%67", "%68", SUMS_64)
#define WGMMA_192(type)                                                                                                \
    WGMMA(192, type, NAMES_90 "%90,%91,%92,%93,%94,%95", "%96", "%97", "%98", "%99", "%100", SUMS_96)
#define WGMMA_256(type)                                                                                                \
    WGMMA(256, type, NAMES_120 "%120,%121,%122,%123,%124,%125,%126,%127", "%128", "%129", "%130", "%131", "%132",      \
          SUMS_128)
#endif

/* Starts one product. */
template <int columns, bool rows_by_depth, bool columns_by_depth, int leading>
__device__ inline void multiply_group(bf16, float *sums, const unsigned char *rows, const unsigned char *across)
{
#ifdef CONVGRAD_SIMULATOR
    sim_wgmma_m64k16_bf16(sums, columns, rows_by_depth, columns_by_depth, leading, rows, across);
#else
    if constexpr (columns == 64)
        WGMMA_64(bf16);
    else if constexpr (columns == 128)
        WGMMA_128(bf16);
    else if constexpr (columns == 192)
        WGMMA_192(bf16);
    else
        WGMMA_256(bf16);
#endif
}

template <int columns, bool rows_by_depth, bool columns_by_depth, int leading>
__device__ inline void multiply_group(f16, float *sums, const unsigned char *rows, const unsigned char *across)
{
#ifdef CONVGRAD_SIMULATOR
    sim_wgmma_m64k16_f16(sums, columns, rows_by_depth, columns_by_depth, leading, rows, across);
#else
    if constexpr (columns == 64)
        WGMMA_64(f16);
    else if constexpr (columns == 128)
        WGMMA_128(f16);
    else if constexpr (columns == 192)
        WGMMA_192(f16);
    else
        WGMMA_256(f16);
#endif
}

/* Makes this thread's writes, and the copies that it has waited for, visible to the multiplying instructions; after a
   barrier, also to the instructions of other threads. */
__device__ inline void show_copies()
{
#ifdef CONVGRAD_SIMULATOR
    sim_fence_proxy_async();
#else
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Must come before products whose sums other instructions have accessed. */
__device__ inline void begin_products()
{
#ifdef CONVGRAD_SIMULATOR
    sim_wgmma_fence();
#else
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/* Ends a group of products. */
__device__ inline void end_products()
{
#ifdef CONVGRAD_SIMULATOR
    sim_wgmma_commit();
#else
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/* Waits until all groups of this warp except the newest `left` are complete and have read their operands. */
template <int left> __device__ inline void wait_products()
{
#ifdef CONVGRAD_SIMULATOR
    sim_wgmma_wait(left);
#else
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
#endif
}

#endif
