/* Sums of the definition, for any geometry, type and strides that no other family of kernels takes.

   Macros: STORAGE, THREADS of a block; in `correlate`, WALKS (axis walks in the arguments), CHANNELS_ADJACENT. */
#include "convgrad/problem.h"
#include "types.cuh"

/* Strides in elements. */
struct Data {
    int64_t batch, group, channel, axis[3];
};
struct Filter {
    int64_t group, out, in, axis[3];
};

/* Channels of a partial sum. Long sums are added up from partial sums, so that rounding errors grow less with length.
   */
constexpr int64_t PART = 128;

/* Removes and returns the lowest digit, in base `radix`, of a number in mixed radix. */
__device__ inline int64_t split(int64_t &rest, int64_t radix)
{
    const int64_t digit = rest % radix;
    rest /= radix;
    return digit;
}

#ifdef WALKS

/* gather.py, _correlate, lists them in this order. */
struct Arguments {
    int64_t batch, groups, source_channels, target_channels;
    int64_t count[3];   /* number of walks on each axis */
    int64_t visited[3]; /* positions on each axis, of all its walks */
    Data source;
    Filter filter;
    Data target;
    conv_axis walks[WALKS]; /* walks of depth, then of height, then of width */
};

/* The walk that contains position `slot`, counted through the walks from `first` on; `slot` becomes its position. */
__device__ inline const conv_axis *walk_of(const conv_axis *first, int64_t &slot)
{
    while (slot >= first->positions)
        slot -= (first++)->positions;
    return first;
}

/* The sum over all channels at one tap. */
__device__ inline compute
over_channels(const storage *source, int64_t source_step, const storage *filter, int64_t filter_step, int64_t channels)
{
    compute sum = 0;
    for (int64_t begin = 0; begin < channels; begin += PART) {
        const int64_t end = begin + PART < channels ? begin + PART : channels;
        compute part = 0;
        for (int64_t c = begin; c < end; c++)
            part = multiply_add(widen(source[c * source_step]), widen(filter[c * filter_step]), part);
        sum += part;
    }
    return sum;
}

/* fprop and dgrad: one thread for each element of the target that the walks visit. (Four blocks on a multiprocessor are
   requested, because for more the compiler would spill registers.) */
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    correlate(const storage *source, const storage *filter, storage *target, const Arguments given)
{
    const int64_t count =
        given.batch * given.groups * given.target_channels * given.visited[0] * given.visited[1] * given.visited[2];
    for (int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x; index < count;
         index += int64_t(gridDim.x) * THREADS) {
        int64_t rest = index, slot[3], channel;
        if (CHANNELS_ADJACENT)
            channel = split(rest, given.target_channels);
        for (int i = 2; i >= 0; i--)
            slot[i] = split(rest, given.visited[i]);
        if (!CHANNELS_ADJACENT)
            channel = split(rest, given.target_channels);
        const int64_t group = split(rest, given.groups), n = rest;
        const conv_axis *walk[3] = {given.walks, given.walks + given.count[0],
                                    given.walks + given.count[0] + given.count[1]};
        storage *to = target + n * given.target.batch + group * given.target.group + channel * given.target.channel;
        for (int i = 0; i < 3; i++) {
            walk[i] = walk_of(walk[i], slot[i]);
            to += conv_target(walk[i], slot[i]) * given.target.axis[i];
        }
        const storage *x = source + n * given.source.batch + group * given.source.group;
        const storage *w = filter + group * given.filter.group + channel * given.filter.out;
        compute sum = 0;
        for (int64_t d = 0; d < walk[0]->taps; d++) {
            const int64_t depth = conv_source(walk[0], slot[0], d);
            if (!conv_inside(walk[0], depth))
                continue;
            for (int64_t h = 0; h < walk[1]->taps; h++) {
                const int64_t height = conv_source(walk[1], slot[1], h);
                if (!conv_inside(walk[1], height))
                    continue;
                for (int64_t v = 0; v < walk[2]->taps; v++) {
                    const int64_t width = conv_source(walk[2], slot[2], v);
                    if (!conv_inside(walk[2], width))
                        continue;
                    const storage *at =
                        x + depth * given.source.axis[0] + height * given.source.axis[1] + width * given.source.axis[2];
                    const storage *tap = w + conv_filter(walk[0], d) * given.filter.axis[0]
                                         + conv_filter(walk[1], h) * given.filter.axis[1]
                                         + conv_filter(walk[2], v) * given.filter.axis[2];
                    sum += over_channels(at, given.source.channel, tap, given.filter.in, given.source_channels);
                }
            }
        }
        *to = narrow(storage(), sum);
    }
}

#else

/* gather.py, _wgrad, lists them in this order. */
struct Arguments {
    int64_t batch, groups, source_channels, target_channels;
    Data source;
    Filter filter;
    Data target;
    conv_axis walk[3];
};

/* A number in mixed radix: batch, depth, height, width. */
struct Position {
    int64_t digit[4];
};

__device__ inline Position position_of(int64_t number, const int64_t *radix)
{
    Position position;
    for (int i = 3; i > 0; i--)
        position.digit[i] = split(number, radix[i]);
    position.digit[0] = number;
    return position;
}

/* wgrad: one block for each element of the filter. Each thread adds every THREADS-th product, then pairs of sums are
   added. */
extern "C" __global__ void
__launch_bounds__(THREADS) wgrad(const storage *source, storage *filter, const storage *target, const Arguments given)
{
    __shared__ compute sums[THREADS];
    const conv_axis *walk = given.walk;
    const int64_t radix[4] = {given.batch, walk[0].positions, walk[1].positions, walk[2].positions};
    const int64_t products = radix[0] * radix[1] * radix[2] * radix[3];
    const int64_t count =
        given.groups * given.target_channels * given.source_channels * walk[0].taps * walk[1].taps * walk[2].taps;
    const int thread = threadIdx.x;
    Position begin = {}, step = {};
    if (products > 0) {
        begin = position_of(thread, radix);
        step = position_of(THREADS, radix);
    }
    for (int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        int64_t rest = index, tap[3];
        for (int i = 2; i >= 0; i--)
            tap[i] = split(rest, walk[i].taps);
        const int64_t in = split(rest, given.source_channels), out = split(rest, given.target_channels), group = rest;
        const storage *x = source + group * given.source.group + in * given.source.channel;
        const storage *y = target + group * given.target.group + out * given.target.channel;
        compute sum = 0;
        Position at = begin;
        for (int64_t product = thread; product < products; product += THREADS) {
            int64_t from = at.digit[0] * given.source.batch, with = at.digit[0] * given.target.batch;
            bool inside = true;
            for (int i = 0; i < 3; i++) {
                const int64_t place = conv_source(&walk[i], at.digit[i + 1], tap[i]);
                if (conv_inside(&walk[i], place))
                    from += place * given.source.axis[i];
                else
                    inside = false;
                with += conv_target(&walk[i], at.digit[i + 1]) * given.target.axis[i];
            }
            if (inside)
                sum = multiply_add(widen(x[from]), widen(y[with]), sum);
            int64_t carry = 0;
            for (int i = 3; i >= 0; i--) {
                at.digit[i] += step.digit[i] + carry;
                carry = i > 0 && at.digit[i] >= radix[i];
                at.digit[i] -= carry * radix[i];
            }
        }
        sums[thread] = sum;
        for (int half = THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (thread < half)
                sums[thread] += sums[thread + half];
        }
        if (thread == 0) {
            int64_t offset = group * given.filter.group + out * given.filter.out + in * given.filter.in;
            for (int i = 0; i < 3; i++)
                offset += conv_filter(&walk[i], tap[i]) * given.filter.axis[i];
            filter[offset] = narrow(storage(), sums[0]);
        }
        __syncthreads();
    }
}

#endif
