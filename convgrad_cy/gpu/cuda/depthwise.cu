/* Convolutions of groups of few channels, at the speed of memory: fprop, and all phases of dgrad.

   window.cuh defines the part of a thread. The threads of a block have neighbouring positions on two axes, so the
   source elements that several of them read come from memory once. The block's part of the filter is in shared memory
   as

       filter[((depth * taps of H + height) * taps of W + width) * IN + in][channel of the block]

   and serves all images of the block, one after the other.

   Padding. Rows outside the source are skipped. Elements outside a row are zeros in the window. Zero times infinity is
   NaN, although the definition has no such term. So a thread that has stored a NaN forms its NaN sums again, from the
   existing terms alone. */
#include "convgrad/problem.h"
#include "types.cuh"
#include "window.cuh"

struct Arguments { /* depthwise.py lists them in this order */
    int64_t batch, channels, channel_tiles, width_tiles, height_tiles, depths, images; /* images: of a block */
    int64_t source[4], filter[6], target[4]; /* strides of (N, D, H, W), of (G, out, in, D, H, W) and of (N, D, H, W) */
    int64_t source_channel, target_channel;  /* strides of channels, counted through all groups */
    int64_t walks[3];                        /* number of walks of each axis */
    conv_axis axis[WALKS];                   /* walks of D, then of H, then of W */
};

/* A block's part of the work, in shared memory. */
struct Part {
    conv_axis axis[3];
    int channel, width, height, depth; /* of the first thread */
    int64_t first, last;               /* images */
};

/* Removes and returns the last digit of a number in mixed radix. */
__device__ inline int take_digit(unsigned &number, int64_t extent)
{
    const unsigned rest = number / unsigned(extent), digit = number - rest * unsigned(extent);
    number = rest;
    return int(digit);
}

__device__ inline void set_part(Part &part, const Arguments &arguments, unsigned number)
{
    const dim3 threads = blockDim;
    part.channel = take_digit(number, arguments.channel_tiles) * int(CHANNELS_LAST ? threads.x : threads.z) * CHANNELS;
    part.width = take_digit(number, arguments.width_tiles) * int(CHANNELS_LAST ? threads.y : threads.x) * POSITIONS;
    for (int axis = 2, begin = WALKS; axis >= 0; --axis) {
        begin -= int(arguments.walks[axis]);
        part.axis[axis] = arguments.axis[begin + take_digit(number, arguments.walks[axis])];
    }
    part.height = take_digit(number, arguments.height_tiles) * int(CHANNELS_LAST ? threads.z : threads.y);
    part.depth = take_digit(number, arguments.depths);
    part.first = int64_t(number) * arguments.images;
    part.last = min(arguments.batch, part.first + arguments.images);
}

/* Loads the block's part of the filter, in the compute type. */
__device__ inline void
load_filter(compute *filter, const storage *from, const Arguments &arguments, const Part &part, int channels)
{
    const int threads = int(blockDim.x * blockDim.y * blockDim.z);
    const int thread = int((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
    const int heights = int(part.axis[1].taps), widths = int(part.axis[2].taps);
    const int elements = int(part.axis[0].taps) * heights * widths * IN * channels;
    for (int i = thread; i < elements; i += threads) {
        const int channel = part.channel + i % channels, in = i / channels % IN, tap = i / channels / IN;
        int64_t place =
            channel / OUT * arguments.filter[0] + channel % OUT * arguments.filter[1] + in * arguments.filter[2];
        place += conv_filter(&part.axis[0], tap / widths / heights) * arguments.filter[3];
        place += conv_filter(&part.axis[1], tap / widths % heights) * arguments.filter[4];
        place += conv_filter(&part.axis[2], tap % widths) * arguments.filter[5];
        filter[i] = channel < arguments.channels ? widen(from[place]) : compute(0);
    }
}

/* The sum of the existing terms of one output. `source` points to its group, `filter` to its channel. */
__device__ inline compute exact_sum(const storage *source, const compute *filter, const Arguments &arguments,
                                    const Part &part, int depth, int height, int width, int channels)
{
    compute sum = 0;
    for (int i = 0; i < int(part.axis[0].taps); ++i)
        for (int j = 0; j < int(part.axis[1].taps); ++j)
            for (int k = 0; k < int(part.axis[2].taps); ++k) {
                const int64_t d = conv_source(&part.axis[0], depth, i), h = conv_source(&part.axis[1], height, j);
                const int64_t w = conv_source(&part.axis[2], width, k);
                const bool exists =
                    conv_inside(&part.axis[0], d) && conv_inside(&part.axis[1], h) && conv_inside(&part.axis[2], w);
                for (int in = 0; in < IN; ++in, filter += channels)
                    if (exists)
                        sum = multiply_add(widen(source[d * arguments.source[1] + h * arguments.source[2]
                                                        + w * arguments.source[3] + in * arguments.source_channel]),
                                           *filter, sum);
            }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256, __CUDA_ARCH__ < 800 ? 1 : 2)
    correlate(const storage *__restrict__ source, const storage *__restrict__ w, storage *target,
              const __grid_constant__ Arguments arguments)
{
    DYNAMIC_SHARED(memory);
    compute *const filter = reinterpret_cast<compute *>(memory);
    __shared__ Part part;
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
        set_part(part, arguments, blockIdx.x);
    __syncthreads();
    const int block_channels = int(CHANNELS_LAST ? blockDim.x : blockDim.z) * CHANNELS;
    load_filter(filter, w, arguments, part, block_channels);
    __syncthreads();

    const int block_channel = int(CHANNELS_LAST ? threadIdx.x : threadIdx.z) * CHANNELS;
    const int channel = part.channel + block_channel, depth = part.depth;
    const int height = part.height + int(CHANNELS_LAST ? threadIdx.z : threadIdx.y);
    const int width = part.width + int(CHANNELS_LAST ? threadIdx.y : threadIdx.x) * POSITIONS;
    const int widths = int(part.axis[2].positions), taps = int(part.axis[2].taps);
    if (channel >= arguments.channels || depth >= part.axis[0].positions || height >= part.axis[1].positions
        || width >= widths)
        return;
    source += part.first * arguments.source[0] + channel / OUT * IN * arguments.source_channel;
    target += part.first * arguments.target[0] + channel * arguments.target_channel
              + conv_target(&part.axis[0], depth) * arguments.target[1]
              + conv_target(&part.axis[1], height) * arguments.target[2]
              + conv_target(&part.axis[2], width) * arguments.target[3];
    const int64_t target_step = part.axis[2].target_step * arguments.target[3];

    for (int64_t image = part.first; image < part.last; ++image) {
        compute sums[POSITIONS][CHANNELS] = {};
        for (int i = 0; i < int(part.axis[0].taps); ++i) {
            int d, h;
            if (!meets(&part.axis[0], depth, i, d))
                continue;
            for (int j = 0; j < int(part.axis[1].taps); ++j) {
                if (!meets(&part.axis[1], height, j, h))
                    continue;
                const storage *const row = source + d * arguments.source[1] + h * arguments.source[2];
                const compute *weights =
                    filter + (i * int(part.axis[1].taps) + j) * taps * IN * block_channels + block_channel;
                for (int first = 0; first < taps; first += TAPS) {
                    const int begin = window_begin(&part.axis[2], width, first);
#pragma unroll
                    for (int input = 0; input < INPUTS; input += AT_ONCE) {
                        Window window;
                        fill_window(window, row + input * arguments.source_channel, &part.axis[2], begin,
                                    arguments.source[3], arguments.source_channel);
#pragma unroll
                        for (int t = 0; t < TAPS; ++t) {
                            if (first + t >= taps)
                                break;
#pragma unroll
                            for (int in = 0; in < (CHANNELS_LAST ? IN : 1); ++in) {
                                const compute *const from = weights + ((first + t) * IN + input + in) * block_channels;
#pragma unroll
                                for (int c = 0; c < CHANNELS; ++c) {
                                    const compute weight = from[c];
#pragma unroll
                                    for (int p = 0; p < POSITIONS; ++p)
                                        sums[p][c] = multiply_add(window.at(window_index(p, t), window_input(c, in)),
                                                                  weight, sums[p][c]);
                                }
                            }
                        }
                    }
                }
            }
        }
        bool any_nan = false;
        typedef Vector<storage, TARGET_VECTOR> Stored;
#pragma unroll
        for (int p = 0; p < POSITIONS; p += (CHANNELS_LAST ? 1 : TARGET_VECTOR)) {
            if (width + p >= widths)
                break;
#pragma unroll
            for (int c = 0; c < CHANNELS; c += (CHANNELS_LAST ? TARGET_VECTOR : 1)) {
                Stored stored;
#pragma unroll
                for (int k = 0; k < TARGET_VECTOR; ++k) {
                    const compute sum = CHANNELS_LAST ? sums[p][c + k] : sums[p + k][c];
                    any_nan |= sum != sum;
                    stored.of[k] = narrow(storage(), sum);
                }
                *reinterpret_cast<Stored *>(target + (p * target_step + c * arguments.target_channel)) = stored;
            }
        }
        if (PADDED && any_nan)
            for (int p = 0; p < POSITIONS && width + p < widths; ++p)
                for (int c = 0; c < CHANNELS; ++c) {
                    storage &stored = target[p * target_step + c * arguments.target_channel];
                    const compute sum = widen(stored);
                    if (sum != sum)
                        stored = narrow(storage(), exact_sum(source + window_input(c, 0) * arguments.source_channel,
                                                             filter + block_channel + c, arguments, part, depth, height,
                                                             width + p, block_channels));
                }
        source += arguments.source[0];
        target += arguments.target[0];
    }
}
