/* Spreads the filter of joined groups and phases (joins.py) for mma.cu: one matrix, with holes where it has no terms.

       packed[plane][group][column][tap0][tap1][tap2][c],  c < padded       column = (phase * joined + j) * out + o

   is the term of group `group * joined + j`, output channel o and input channel c - j * ins, if this channel exists
   and, on each axis, this tap, whose distance is begin + phase + tap * step. A thread writes 16 bytes. */
#include "convgrad/problem.h"
#include "planes.cuh"

typedef PACKED packed;

/* joins.py lists them in this order. */
struct Axis {
    int64_t taps, phases, begin, step, dilation, size;
};

struct Arguments {
    int64_t rows, padded, columns, joined, out, ins;
    int64_t group_stride, out_stride, in_stride, tap_strides[3];
    Axis axes[3];
};

constexpr int THREADS = 256;
constexpr int CHUNK = 16 / sizeof(packed);

extern "C" __global__ void __launch_bounds__(THREADS)
    spread(const storage *__restrict__ source, packed *__restrict__ target, const __grid_constant__ Arguments arguments)
{
    const unsigned chunks = unsigned(arguments.padded) / CHUNK, index = blockIdx.x * THREADS + threadIdx.x;
    unsigned row = index / chunks;
    if (row >= arguments.rows)
        return;
    unsigned tap[3];
#pragma unroll
    for (int i = 2; i >= 0; i--) {
        tap[i] = row % unsigned(arguments.axes[i].taps);
        row /= unsigned(arguments.axes[i].taps);
    }
    const unsigned out = unsigned(arguments.out), joined = unsigned(arguments.joined);
    unsigned rest = row % unsigned(arguments.columns);
    const unsigned group = row / unsigned(arguments.columns);
    source += rest % out * arguments.out_stride;
    rest /= out;
    const unsigned member = rest % joined;
    unsigned phase = rest / joined;
    source += (int64_t(group) * joined + member) * arguments.group_stride;
    bool tap_exists = true;
#pragma unroll
    for (int i = 2; i >= 0; i--) {
        const Axis &axis = arguments.axes[i];
        const int distance = int(axis.begin) + int(phase % unsigned(axis.phases)) + int(tap[i]) * int(axis.step);
        const int number = distance / int(axis.dilation);
        phase /= unsigned(axis.phases);
        tap_exists = tap_exists && distance >= 0 && distance % int(axis.dilation) == 0 && number < axis.size;
        source += number * arguments.tap_strides[i];
    }
    union {
        packed values[CHUNK];
        uint4 all;
    } chunk[PLANES];
    const int first = int(index % chunks * CHUNK) - int(member * unsigned(arguments.ins));
#pragma unroll
    for (int k = 0; k < CHUNK; k++) {
        const bool exists = tap_exists && first + k >= 0 && first + k < arguments.ins;
        packed planes[PLANES];
        split(planes, exists ? source[(first + k) * arguments.in_stride] : storage());
        if (!exists)
            make_hole(planes[0]);
        else if (is_hole(planes[0]))
            planes[0] = packed();
#pragma unroll
        for (int plane = 0; plane < PLANES; plane++)
            chunk[plane].values[k] = planes[plane];
    }
    packed *const to = target + int64_t(index) * CHUNK;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        *reinterpret_cast<uint4 *>(to + plane * (arguments.rows * arguments.padded)) = chunk[plane].all;
}
