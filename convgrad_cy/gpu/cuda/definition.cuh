/* One result of taps.cuh, computed by the definition. */
#ifndef CONVGRAD_DEFINITION_CUH
#define CONVGRAD_DEFINITION_CUH

#include "planes.cuh"
#include "taps.cuh"

/* Whether the filter's innermost axis is the target's channels, not the source's. */
#ifndef FILTER_BY_DEPTH
#define FILTER_BY_DEPTH 0
#endif

/* The sum of a result's existing terms in the depths begin to end. Tiles also add products with the zeros of padding
   and products of planes, which are parts of numbers. Both are right for finite numbers, but infinity times zero is
   NaN. So a sum that came out as infinity or NaN is formed again here. The loop stops at the first NaN. */
__device__ __noinline__ sum_type defined_sum(const element *source, const element *filter, const Walk &walk,
                                             const Arguments &arguments, unsigned row, int column, int64_t begin,
                                             int64_t end)
{
    unsigned place[3];
    source += walk.locate(row, place) * arguments.source.batch;
    filter += column * arguments.filter.batch;
    const int64_t step = FILTER_BY_DEPTH ? arguments.filter.channel : 1;
    sum_type sum = 0;
    int64_t tap[3], at[3];
    for (tap[0] = 0; tap[0] < walk.axis[0].taps; tap[0]++)
        for (tap[1] = 0; tap[1] < walk.axis[1].taps; tap[1]++)
            for (tap[2] = 0; tap[2] < walk.axis[2].taps; tap[2]++) {
                const element *a = source, *b = filter;
                bool inside = true;
                for (int i = 0; i < 3; i++) {
                    at[i] = conv_source(&walk.axis[i], place[i], tap[i]);
                    inside = inside && conv_inside(&walk.axis[i], at[i]);
                    a += at[i] * arguments.source.axis[i];
                    b += conv_filter(&walk.axis[i], tap[i]) * arguments.filter.axis[i];
                }
                for (int64_t c = 0; inside && c < arguments.channels && sum == sum; c += CHUNK)
                    if (begin <= c && c < end) /* all three are multiples of CHUNK */
#pragma unroll(FILTER_BY_DEPTH ? 1 : CHUNK)
                        for (int k = 0; k < CHUNK; k++)
                            if (!arguments.holes || !is_hole(b[(c + k) * step]))
                                sum = multiply_add(whole(a + c + k, arguments.source_plane),
                                                   whole(b + (c + k) * step, arguments.filter_plane), sum);
                if (sum != sum)
                    return sum;
                begin -= arguments.channels;
                end -= arguments.channels;
            }
    return sum;
}

#endif
