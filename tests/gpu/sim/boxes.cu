/* Tensor copies with known results and mistakes, for the tests of the simulator itself. */
struct alignas(64) TensorMap {
    unsigned char opaque[128];
};

struct Arguments {
    int64_t mistake, tiled, axes, channel, place[3], image, offset[3], at[5], bytes;
};

/* One box, in its shared memory layout. */
enum {
    NO_WAIT = 1,
    NO_FENCE,
    NO_BARRIER,
    NEVER_ARRIVES,
    ARRIVES_TWICE,
    WRONG_BYTES,
    MISPLACED,
    NOT_SHARED,
    NO_MAP,
    NOT_MADE
};

extern "C" __global__ void box(const unsigned char *from, unsigned char *to, const __grid_constant__ TensorMap map,
                               const __grid_constant__ Arguments arguments)
{
    DYNAMIC_SHARED(memory);
    __shared__ unsigned long long meter;
    const int64_t mistake = arguments.mistake;
    const unsigned t = threadIdx.x;
    unsigned char *const shared = memory + (-reinterpret_cast<int64_t>(memory) & 1023);
    if (t == 0 && mistake != NOT_MADE) {
        sim_mbarrier_init(&meter, 1);
        if (mistake != NO_FENCE)
            sim_fence_mbarrier_init();
    }
    if (mistake != NO_BARRIER)
        __syncthreads();
    if (t == 0) {
        int place[3], offset[3], at[5];
        for (int i = 0; i < 3; i++)
            place[i] = int(arguments.place[i]), offset[i] = int(arguments.offset[i]);
        for (int i = 0; i < 5; i++)
            at[i] = int(arguments.at[i]);
        if (mistake != NEVER_ARRIVES)
            sim_mbarrier_arrive_expect_tx(&meter, int(arguments.bytes) - (mistake == WRONG_BYTES) * 16);
        if (mistake == ARRIVES_TWICE)
            sim_mbarrier_arrive(&meter);
        unsigned char *place_of_box = mistake == MISPLACED ? shared + 128 : mistake == NOT_SHARED ? to : shared;
        const void *its_map = mistake == NO_MAP ? static_cast<const void *>(from) : &map;
        if (arguments.tiled)
            sim_tensor_copy(place_of_box, its_map, &meter, at);
        else
            sim_tensor_copy_im2col(place_of_box, its_map, &meter, int(arguments.axes), int(arguments.channel), place,
                                   int(arguments.image), offset);
    }
    if (mistake != NO_WAIT)
        sim_mbarrier_wait(&meter, 0);
    for (int i = int(t); i < arguments.bytes; i += int(blockDim.x))
        to[i] = shared[i];
}

/* Half of the threads wait for one another at their own barrier, in turns with all threads. */
enum { TOO_FEW = 1 };
struct Counts {
    int64_t mistake;
};

extern "C" __global__ void halves(const int *from, int *to, Counts arguments)
{
    __shared__ int shared[64];
    const unsigned t = threadIdx.x;
    if (t >= 32)
        return;
    shared[t] = from[t];
    sim_barrier_or(1, arguments.mistake == TOO_FEW ? 64 : 32, false);
    const bool any = sim_barrier_or(1, 32, shared[31 - t] == 7);
    to[t] = shared[31 - t] + 100 * any;
}
