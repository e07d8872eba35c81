/* Kernels with known results and mistakes, for the tests of the simulator itself. `mistake` chooses the mistake. */
struct Arguments {
    int64_t mistake;
};

/* Each block reverses its part of the data through shared memory. */
enum { NO_BARRIER = 1, HALF_BARRIER, TWO_BARRIERS, BEYOND_SHARED, BEYOND_GLOBAL, WRITES_INPUT };

extern "C" __global__ void reverse(float *from, float *to, Arguments arguments)
{
    DYNAMIC_SHARED(memory);
    float *tile = reinterpret_cast<float *>(memory);
    const int64_t mistake = arguments.mistake, base = int64_t(blockIdx.x) * blockDim.x;
    const unsigned t = threadIdx.x;
    tile[mistake == BEYOND_SHARED ? t + 1 : t] = from[base + t];
    if (mistake == TWO_BARRIERS && t < 32) {
        __syncthreads();
    } else if (mistake != NO_BARRIER && (mistake != HALF_BARRIER || t < 40)) {
        __syncthreads();
    }
    to[base + t + (mistake == BEYOND_GLOBAL)] = tile[blockDim.x - 1 - t];
    if (mistake == WRITES_INPUT)
        from[base + t] = 0;
}

/* Sums data of cp.async, a piece of four floats for each thread and each of eight steps, three pieces ahead. */
enum { LAX_WAIT = 1, REUSED_TOO_EARLY, MISALIGNED_COPY, NOT_SHARED };

extern "C" __global__ void pipeline(const float *from, float *to, Arguments arguments)
{
    enum { STEPS = 8, STAGES = 3 };
    DYNAMIC_SHARED(memory);
    const int64_t mistake = arguments.mistake;
    const unsigned t = threadIdx.x, threads = blockDim.x;
    float4 *stages = reinterpret_cast<float4 *>(memory);
    float sum = 0;
    for (int step = 0; step < STEPS + STAGES - 1; ++step) {
        const int read = step - (STAGES - 1);
        if (step < STEPS) {
            float4 *target = &stages[step % STAGES * threads + t];
            const float *source = from + (step * threads + t) * 4;
            if (mistake == MISALIGNED_COPY)
                sim_cp_async_16(target, source + 1, 16);
            else if (mistake == NOT_SHARED)
                sim_cp_async_16(to, source, 16);
            else
                sim_cp_async_16(target, source, step == STEPS - 1 ? 8 : 16); /* the last piece is half zeros */
        }
        sim_cp_async_commit();
        if (read >= 0) {
            sim_cp_async_wait(mistake == LAX_WAIT ? STAGES : STAGES - 1);
            __syncthreads();
            const float4 piece = stages[read % STAGES * threads + (t + 1) % threads]; /* another thread's */
            sum += piece.x + 2 * piece.y + 3 * piece.z + 4 * piece.w;
            if (mistake != REUSED_TOO_EARLY)
                __syncthreads();
        }
    }
    to[t] = sum;
}

/* One warp: C += A B, with the fragments taken by ldmatrix from shared memory as A (16, 16) and B (16, 8), row by row. */
extern "C" __global__ void multiply(const uint16_t *a, const uint16_t *b, float *c, Arguments arguments)
{
    DYNAMIC_SHARED(memory);
    uint16_t *tile_a = reinterpret_cast<uint16_t *>(memory), *tile_b = tile_a + 256;
    const int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32)
        tile_a[i] = a[i];
    for (int i = lane; i < 128; i += 32)
        tile_b[i] = b[i];
    __syncwarp();
    uint32_t fragment_a[4], fragment_b[2];
    float sums[4];
    for (int i = 0; i < 4; ++i)
        sums[i] = c[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2];
    sim_ldmatrix_x4(fragment_a, tile_a + (lane % 16) * 16 + lane / 16 * 8);
    sim_ldmatrix_x2_trans(fragment_b, tile_b + lane % 16 * 8);
    if (arguments.mistake == 1 && lane > 20)
        return;
    if (arguments.mistake == 2 && lane == 3)
        __syncwarp();
    sim_mma_m16n8k16_bf16(sums, fragment_a, fragment_b);
    for (int i = 0; i < 4; ++i)
        c[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2] = sums[i];
}

/* The product of fragments that the caller has laid out: registers of all lanes, one after another. */
template <int A, int B, int D, class Register, class Sum>
__device__ void
fragments(const Register *a, const Register *b, Sum *d, void (*mma)(Sum *, const Register *, const Register *))
{
    const int lane = threadIdx.x;
    Register own_a[A], own_b[B];
    Sum sums[D];
    for (int i = 0; i < A; ++i)
        own_a[i] = a[lane * A + i];
    for (int i = 0; i < B; ++i)
        own_b[i] = b[lane * B + i];
    for (int i = 0; i < D; ++i)
        sums[i] = d[lane * D + i];
    mma(sums, own_a, own_b);
    for (int i = 0; i < D; ++i)
        d[lane * D + i] = sums[i];
}

extern "C" __global__ void k16_f16(const uint32_t *a, const uint32_t *b, float *d, Arguments)
{
    fragments<4, 2, 4>(a, b, d, sim_mma_m16n8k16_f16);
}

extern "C" __global__ void k8_bf16(const uint32_t *a, const uint32_t *b, float *d, Arguments)
{
    fragments<2, 1, 4>(a, b, d, sim_mma_m16n8k8_bf16);
}

extern "C" __global__ void k4_f64(const double *a, const double *b, double *d, Arguments)
{
    fragments<1, 1, 2, double, double>(
        a, b, d, [](double *sums, const double *x, const double *y) { sim_mma_m8n8k4_f64(sums, *x, *y); });
}

extern "C" __global__ void k16_f64(const double *a, const double *b, double *d, Arguments)
{
    fragments<8, 4, 4>(a, b, d, sim_mma_m16n8k16_f64);
}

/* Sums of 32 values by shuffles, each in its own way; the last warp has lanes that have returned. */
extern "C" __global__ void shuffles(const int *from, int *to, Arguments arguments)
{
    const unsigned t = threadIdx.x, all = 0xffffffffu;
    const int value = from[t];
    int butterfly = value, down = value;
    for (int distance = 16; distance; distance /= 2) {
        butterfly += __shfl_xor_sync(all, butterfly, distance);
        down += __shfl_down_sync(all, down, distance);
    }
    int halves = 0;
    if (t % 32 < 16) /* a branch of its own, and a mask of its own */
        halves = __shfl_sync(0xffffu, value, 3);
    else
        halves = __shfl_sync(arguments.mistake ? 0xffffu : 0xffff0000u, value, 19);
    to[t] = butterfly;
    to[t + 64] = __shfl_sync(all, down, 0);
    to[t + 128] = halves;
    to[t + 192] = int(__ballot_sync(all, value > 0));
}

/* Three votes of a block. from[i] is the number of threads, from the first on, that vote for the i-th. */
extern "C" __global__ void votes(const int *from, int *to, Arguments)
{
    const unsigned t = threadIdx.x;
    for (int round = 0; round < 3; ++round)
        to[round * blockDim.x + t] = __syncthreads_or(int(t) < from[round]) != 0;
}

/* Reads sixteen bytes from an address that is no multiple of sixteen. */
extern "C" __global__ void misaligned(const float *from, float *to, Arguments arguments)
{
    *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from + arguments.mistake);
}
