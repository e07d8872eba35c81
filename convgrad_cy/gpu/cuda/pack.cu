/* Packs operands for mma.cu: any strides -> adjacent channels, padded with zeros, and floats as sums of bf16.

       packed[plane][row][c],  c < padded       row = (((i0 * e1 + i1) * e2 + i2) * e3 + i3) * e4 + i4

   comes from source[i0 * strides[0] + ... + i4 * strides[4] + c * step]. For data the five axes are batch, group,
   depth, height, width; for the filter group, its outer channel, taps. A block transposes 4096 elements, 2^rows_bits
   rows by 2^(12 - rows_bits) channels, in shared memory. Neighbouring threads read along the innermost axis in memory,
   and write chunks of 16 bytes of channels. */
#include "convgrad/problem.h"
#include "planes.cuh"

typedef PACKED packed;

/* pack.py lists them in this order. */
struct Arguments {
    int64_t extents[5];
    int64_t strides[5];
    int64_t channels;
    int64_t padded;
    int64_t step;
    int64_t rows_bits;
    int64_t along_rows; /* the innermost axis in memory is an axis of rows, not the channels */
};

constexpr int THREADS = 256;
constexpr int BITS = 12;
constexpr int CHUNK = 16 / sizeof(packed);

extern "C" __global__ void __launch_bounds__(THREADS)
    pack(const storage *__restrict__ source, packed *__restrict__ target, const __grid_constant__ Arguments arguments)
{
    /* rows_bits is at most 9: 512 rows. With an odd pitch, neighbouring rows and neighbouring channels are in different
       banks. */
    __shared__ storage tile[(1 << BITS) + (1 << 9)];
    __shared__ int64_t row_source[1 << 9];

    const int rows_bits = int(arguments.rows_bits), width_bits = BITS - rows_bits;
    const int rows = 1 << rows_bits, width = 1 << width_bits;
    const int64_t all_rows = arguments.extents[0] * arguments.extents[1] * arguments.extents[2] * arguments.extents[3]
                             * arguments.extents[4];
    const int64_t first_row = int64_t(blockIdx.x) * rows;
    const int64_t first_channel = int64_t(blockIdx.y) * width;
    const int rows_here = int(all_rows - first_row < rows ? all_rows - first_row : rows);
    const int channels_left = int(arguments.channels - first_channel);
    const int padded_left = int(arguments.padded - first_channel);

    for (int i = threadIdx.x; i < rows_here; i += THREADS) {
        unsigned rest = unsigned(first_row) + i; /* pack.py: rows fit into 32 bits, whose division is fast */
        int64_t offset = 0;
#pragma unroll
        for (int j = 4; j > 0; j--) {
            const unsigned extent = unsigned(arguments.extents[j]);
            offset += rest % extent * arguments.strides[j];
            rest /= extent;
        }
        row_source[i] = offset + rest * arguments.strides[0];
    }
    __syncthreads();
    source += first_channel * arguments.step;
#pragma unroll 8
    for (int i = threadIdx.x; i < 1 << BITS; i += THREADS) {
        const int row = arguments.along_rows ? i & (rows - 1) : i >> width_bits;
        const int channel = arguments.along_rows ? i >> rows_bits : i & (width - 1);
        if (row < rows_here && channel < channels_left)
            tile[row * (width + 1) + channel] = source[row_source[row] + channel * arguments.step];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < (1 << BITS) / CHUNK; i += THREADS) {
        const int row = i * CHUNK >> width_bits, channel = i * CHUNK & (width - 1);
        if (row >= rows_here || channel >= padded_left)
            continue;
        union {
            packed values[CHUNK];
            uint4 all;
        } chunks[PLANES];
#pragma unroll
        for (int k = 0; k < CHUNK; k++) {
            packed planes[PLANES];
            split(planes, channel + k < channels_left ? tile[row * (width + 1) + channel + k] : storage());
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++)
                chunks[plane].values[k] = planes[plane];
        }
        packed *to = target + (first_row + row) * arguments.padded + first_channel + channel;
#pragma unroll
        for (int plane = 0; plane < PLANES; plane++)
            *reinterpret_cast<uint4 *>(to + plane * all_rows * arguments.padded) = chunks[plane].all;
    }
}
