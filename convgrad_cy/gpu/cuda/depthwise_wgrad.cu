/* The gradient of a filter whose groups have few channels, as split-K: for each split of the positions, this kernel
   stores

       partials[split][((((group * taps of D + depth) * taps of H + height) * taps of W + width) * IN + in) * OUT + out]

   and reduce.cu adds them. window.cuh defines the part of a thread. Here it is the products of a strip of POSITIONS
   gradients with the window of the source that they meet, for TAPS taps of one row of the filter (a row of taps is cut
   into chunks) and for all inputs of CHANNELS outputs. The threads of a block with the same row and channels are its
   lanes. They take turns at the strips of the block, and their sums are added in the order of the lanes.

   Padding, and the elements of a strip behind the end of a row, are zeros. Zero times infinity is NaN, although the
   definition has no such term. So a sum that came out as NaN is formed again, from the existing terms alone. */
#include "convgrad/problem.h"
#include "types.cuh"
#include "window.cuh"

struct Arguments { /* depthwise_wgrad.py lists them in this order */
    int64_t channels, channel_tiles, row_tiles, strips, split_strips,
        elements;                           /* strips: of all positions, of a split; elements: of one split's sums */
    int64_t source[4], target[4];           /* strides of (N, D, H, W) */
    int64_t source_channel, target_channel; /* strides of channels, counted through all groups */
    conv_axis axis[3];
};

#define SUMS (TAPS * CHANNELS * IN)
#define ROUND 8
#define THREADS 256

typedef Read<storage, TARGET_VECTOR> Gradients;

/* A strip of positions, as a number in mixed radix: batch, depth, height, strip of a row. */
struct Strip {
    int digit[4];
};

__device__ inline Strip strip_of(const int *extents, unsigned number)
{
    Strip strip;
#pragma unroll
    for (int i = 3; i > 0; --i) {
        strip.digit[i] = int(number % unsigned(extents[i]));
        number /= unsigned(extents[i]);
    }
    strip.digit[0] = int(number);
    return strip;
}

__device__ inline void advance(Strip &strip, const Strip &step, const int *extents)
{
    int carry = 0;
#pragma unroll
    for (int i = 3; i > 0; --i) {
        strip.digit[i] += step.digit[i] + carry;
        carry = strip.digit[i] >= extents[i];
        strip.digit[i] -= carry ? extents[i] : 0;
    }
    strip.digit[0] += step.digit[0] + carry;
}

/* An element of the filter: a tap, an output channel and an input of its group. */
struct Tap {
    int depth, height, width, channel, in;
};

/* The sum of the existing terms of one element of the filter, in the strips from `first` to `last`, up to the first
   NaN. */
__device__ inline compute exact_sum(const storage *source, const storage *target, const Arguments &arguments,
                                    const int *extents, const Tap &tap, unsigned first, unsigned last)
{
    const conv_axis *const axis = arguments.axis;
    source += (tap.channel / OUT * IN + tap.in) * arguments.source_channel;
    target += tap.channel * arguments.target_channel;
    compute sum = 0;
    for (unsigned number = first; number < last; ++number) {
        const Strip strip = strip_of(extents, number);
        const int64_t d = conv_source(axis, strip.digit[1], tap.depth),
                      h = conv_source(axis + 1, strip.digit[2], tap.height);
        if (!conv_inside(axis, d) || !conv_inside(axis + 1, h))
            continue;
        const storage *const x =
            source + strip.digit[0] * arguments.source[0] + d * arguments.source[1] + h * arguments.source[2];
        const storage *const y = target + strip.digit[0] * arguments.target[0] + strip.digit[1] * arguments.target[1]
                                 + strip.digit[2] * arguments.target[2];
        for (int64_t p = int64_t(strip.digit[3]) * POSITIONS, end = min(p + POSITIONS, axis[2].positions); p < end;
             ++p) {
            const int64_t w = conv_source(axis + 2, p, tap.width);
            if (conv_inside(axis + 2, w))
                sum = multiply_add(widen(x[w * arguments.source[3]]), widen(y[p * arguments.target[3]]), sum);
        }
        if (sum != sum)
            break;
    }
    return sum;
}

/* The gradients of a strip, zeros beyond the end of a row. */
__device__ inline void
load_gradients(compute gradients[POSITIONS][CHANNELS], const storage *from, const Arguments &arguments, int first)
{
    constexpr int PASS = CHANNELS_LAST ? 1 : TARGET_VECTOR;
    const int widths = int(arguments.axis[2].positions);
#pragma unroll
    for (int p = 0; p < POSITIONS; p += PASS, from += PASS * arguments.target[3])
#pragma unroll
        for (int c = 0; c < CHANNELS; c += (CHANNELS_LAST ? TARGET_VECTOR : 1)) {
            Gradients read = {};
            if (first + p < widths)
                read = *reinterpret_cast<const Gradients *>(from + c * arguments.target_channel);
#pragma unroll
            for (int k = 0; k < TARGET_VECTOR; ++k)
                gradients[CHANNELS_LAST ? p : p + k][CHANNELS_LAST ? c + k : c] = read.widened(k);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, __CUDA_ARCH__ < 800 ? 1 : 2)
    wgrad(const storage *__restrict__ source, const storage *__restrict__ target, compute *partials,
          const __grid_constant__ Arguments arguments)
{
    __shared__ compute exchanged[ROUND][THREADS];
    const conv_axis *const axis = arguments.axis;
    const int lanes = int(CHANNELS_LAST ? blockDim.y : blockDim.x),
              lane = int(CHANNELS_LAST ? threadIdx.y : threadIdx.x);
    const int rows = int(CHANNELS_LAST ? blockDim.z : blockDim.y), row = int(CHANNELS_LAST ? threadIdx.z : threadIdx.y);
    const int blocks = int(CHANNELS_LAST ? blockDim.x : blockDim.z),
              block = int(CHANNELS_LAST ? threadIdx.x : threadIdx.z);
    const int thread = int((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);

    unsigned number = blockIdx.x;
    const int first_channel = int(number % unsigned(arguments.channel_tiles)) * blocks * CHANNELS;
    number /= unsigned(arguments.channel_tiles);
    const int first_row = int(number % unsigned(arguments.row_tiles)) * rows;
    const unsigned split = number / unsigned(arguments.row_tiles);
    const unsigned first = split * unsigned(arguments.split_strips);
    const unsigned last = min(unsigned(arguments.strips), first + unsigned(arguments.split_strips));

    const int heights = int(axis[1].taps), widths = int(axis[2].taps), chunks = (widths + TAPS - 1) / TAPS;
    const int channel = first_channel + block * CHANNELS, chunk = (first_row + row) % chunks;
    const int height = (first_row + row) / chunks % heights, depth = (first_row + row) / chunks / heights;
    const int extents[4] = {0, int(axis[0].positions), int(axis[1].positions),
                            int((axis[2].positions + POSITIONS - 1) / POSITIONS)};

    compute sums[SUMS] = {};
    if (channel < arguments.channels && depth < axis[0].taps) {
        const storage *const x = source + channel / OUT * IN * arguments.source_channel;
        const storage *const y = target + channel * arguments.target_channel;
        const Strip step = strip_of(extents, unsigned(lanes));
        Strip strip = strip_of(extents, first + unsigned(lane));
        for (unsigned i = first + unsigned(lane); i < last; i += unsigned(lanes), advance(strip, step, extents)) {
            const int64_t d = conv_source(axis, strip.digit[1], depth),
                          h = conv_source(axis + 1, strip.digit[2], height);
            if (!conv_inside(axis, d) || !conv_inside(axis + 1, h))
                continue;
            const int position = strip.digit[3] * POSITIONS;
            compute gradients[POSITIONS][CHANNELS];
            load_gradients(gradients,
                           y
                               + (strip.digit[0] * arguments.target[0] + strip.digit[1] * arguments.target[1]
                                  + strip.digit[2] * arguments.target[2] + position * arguments.target[3]),
                           arguments, position);
            const storage *const from =
                x + (strip.digit[0] * arguments.source[0] + d * arguments.source[1] + h * arguments.source[2]);
            const int begin = window_begin(axis + 2, position, chunk * TAPS);
#pragma unroll
            for (int input = 0; input < INPUTS; input += AT_ONCE) {
                Window window;
                fill_window(window, from + input * arguments.source_channel, axis + 2, begin, arguments.source[3],
                            arguments.source_channel);
#pragma unroll
                for (int t = 0; t < TAPS; ++t)
#pragma unroll
                    for (int c = 0; c < CHANNELS; ++c)
#pragma unroll
                        for (int in = 0; in < (CHANNELS_LAST ? IN : 1); ++in)
#pragma unroll
                            for (int p = 0; p < POSITIONS; ++p) {
                                compute &sum = sums[(t * CHANNELS + c) * IN + input * !CHANNELS_LAST + in];
                                sum = multiply_add(window.at(window_index(p, t), window_input(c, in)), gradients[p][c],
                                                   sum);
                            }
            }
        }
    }

    /* The element of the filter whose sums, of all lanes, are exchanged in a round as number `i`. */
    auto tap_of = [&](int round, int i) {
        const int b = CHANNELS_LAST ? i % blocks : i / rows % blocks,
                  r = first_row + (CHANNELS_LAST ? i / blocks % rows : i % rows);
        const int which = round + i / (rows * blocks);
        const Tap tap = {r / chunks / heights, r / chunks % heights, r % chunks * TAPS + which / IN / CHANNELS,
                         first_channel + b * CHANNELS + which / IN % CHANNELS, which % IN};
        return tap;
    };
    auto exists = [&](const Tap &tap) {
        return tap.depth < axis[0].taps && tap.width < widths && tap.channel < arguments.channels;
    };
    auto place_of = [&](const Tap &tap) {
        const int64_t row_of_taps = (int64_t(tap.channel / OUT) * axis[0].taps + tap.depth) * heights + tap.height;
        return ((row_of_taps * widths + tap.width) * IN + tap.in) * OUT + tap.channel % OUT;
    };
    const int together = rows * blocks, threads = lanes * together;
    partials += int64_t(split) * arguments.elements;
    bool any_nan = false;
#pragma unroll
    for (int round = 0; round < SUMS; round += ROUND) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ROUND && round + i < SUMS; ++i)
            exchanged[i][thread] = sums[round + i];
        __syncthreads();
        for (int i = thread; i < min(ROUND, SUMS - round) * together; i += threads) {
            const Tap tap = tap_of(round, i);
            if (!exists(tap))
                continue;
            const int of_block = i % together;
            const compute *from = exchanged[i / together];
            from += CHANNELS_LAST ? of_block / blocks * lanes * blocks + of_block % blocks : of_block * lanes;
            compute total = 0;
            for (int l = 0; l < lanes; ++l)
                total += from[l * (CHANNELS_LAST ? blocks : 1)];
            any_nan |= total != total;
            partials[place_of(tap)] = total;
        }
    }
    if (any_nan)
        for (int round = 0; round < SUMS; round += ROUND)
            for (int i = thread; i < min(ROUND, SUMS - round) * together; i += threads) {
                const Tap tap = tap_of(round, i);
                if (!exists(tap))
                    continue;
                compute &total = partials[place_of(tap)];
                if (total != total)
                    total = exact_sum(source, target, arguments, extents, tap, first, last);
            }
}
