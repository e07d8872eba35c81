/* Instructions that CUDA C++ does not offer, one function each: matrix products, loads of their operands, asynchronous
   copies into shared memory, and stores of whole vectors. For sm_80 and later. Only this file, wgmma.cuh and engine.cuh
   know of the simulator. */
#ifndef CONVGRAD_PTX_CUH
#define CONVGRAD_PTX_CUH

#include "types.cuh"

/* The architecture to compile for. The simulator has 90 unless a test sets another one. */
#ifndef CONVGRAD_SIMULATOR
#define ARCH __CUDA_ARCH__
#elif !defined(ARCH)
#define ARCH 900
#endif

/* ---- matrix products: c += a b, in float or double ----

   With g = lane / 4 and t = lane % 4, a lane has of the 16 x 8 sums c
       c[i]: row g + 8 (i / 2), column 2 t + i % 2
   and in 16-bit types, two depths to a word, of a (16 x 16) and b (16 x 8)
       a[i]: row g + 8 (i % 2), depths 2 t + 8 (i / 2) and the next;  b[i]: column g, depths 2 t + 8 i and the next
   and in double, one depth to a word, of a (16 x 8) and b (8 x 8)
       a[i]: row g + 8 (i % 2), depth t + 4 (i / 2);                  b[i]: column g, depth t + 4 i            */

__device__ inline void multiply(bf16, float c[4], const unsigned a[4], const unsigned b[2])
{
#ifdef CONVGRAD_SIMULATOR
    sim_mma_m16n8k16_bf16(c, a, b);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

__device__ inline void multiply(f16, float c[4], const unsigned a[4], const unsigned b[2])
{
#ifdef CONVGRAD_SIMULATOR
    sim_mma_m16n8k16_f16(c, a, b);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/* 8 x 8 sums over 4 depths. A lane holds one element of a, one of b, and the sums c[0] and c[1] as above. */
__device__ inline void multiply_8x8(double c[2], double a, double b)
{
#ifdef CONVGRAD_SIMULATOR
    sim_mma_m8n8k4_f64(c, a, b);
#else
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
#endif
}

__device__ inline void multiply(double, double c[4], const double a[4], const double b[2])
{
#if ARCH < 900 /* only 8 x 8 x 4 exists */
#pragma unroll
    for (int i = 0; i < 4; i++)
        multiply_8x8(c + 2 * (i % 2), a[i], b[i / 2]);
#elif defined(CONVGRAD_SIMULATOR)
    sim_mma_m16n8k8_f64(c, a, b);
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#endif
}

/* ---- operands of 16-bit types from shared memory ----

   Each lane gives the address of one row of 16 bytes; lanes 8 i to 8 i + 7 give the rows of the 8 x 8 matrix i. A lane
   receives in r[i] the elements (g, 2 t) and (g, 2 t + 1) of matrix i, or of its transpose. */

#ifndef CONVGRAD_SIMULATOR
__device__ inline unsigned shared_address(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}
#endif

__device__ inline void load_matrices(unsigned r[4], const void *row)
{
#ifdef CONVGRAD_SIMULATOR
    sim_ldmatrix_x4(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
#endif
}

/* Loads only the first two matrices. */
__device__ inline void load_two_matrices(unsigned r[2], const void *row)
{
#ifdef CONVGRAD_SIMULATOR
    sim_ldmatrix_x2(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
#endif
}

__device__ inline void load_matrices_transposed(unsigned r[4], const void *row)
{
#ifdef CONVGRAD_SIMULATOR
    sim_ldmatrix_x4_trans(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
#endif
}

/* ---- stores to global memory ----

   The compiler may split the store of a vector if the same words are stored elsewhere. It splits none of these. */

__device__ inline void store_vector(void *to, uint4 vector)
{
#ifdef CONVGRAD_SIMULATOR
    *reinterpret_cast<uint4 *>(to) = vector;
#else
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(vector.x), "r"(vector.y), "r"(vector.z),
                 "r"(vector.w)
                 : "memory");
#endif
}

__device__ inline void store_vector(void *to, uint2 vector)
{
#ifdef CONVGRAD_SIMULATOR
    *reinterpret_cast<uint2 *>(to) = vector;
#else
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(vector.x), "r"(vector.y) : "memory");
#endif
}

/* ---- asynchronous copies from global to shared memory, 16 bytes each, without the L1 cache ----

   If not `exists`, nothing is read, the address may be any multiple of 16, and zeros are written. Other threads see the
   data after wait_copies and a barrier. */

__device__ inline void copy_16_bytes(void *shared, const void *global, bool exists)
{
#ifdef CONVGRAD_SIMULATOR
    sim_cp_async_16(shared, global, exists ? 16 : 0);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                 "r"(exists ? 16 : 0)
                 : "memory");
#endif
}

/* Ends a group of copies. */
__device__ inline void end_copies()
{
#ifdef CONVGRAD_SIMULATOR
    sim_cp_async_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until all groups of this thread except the newest `left` have arrived. */
template <int left> __device__ inline void wait_copies()
{
#ifdef CONVGRAD_SIMULATOR
    sim_cp_async_wait(left);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

#endif
