/* Transposes matrices, 16 bytes at a time: it packs operands with channels first for mma.cu, and unpacks results.

       target[plane][image][column][row] = source[image][row][column]      with zeros from `rows` to `padded`

   Columns are adjacent in the source, and rows are adjacent in the target. To pack, rows are channels and columns are
   positions; PLANES planes of PACKED become the sum of a number, as in pack.cu. To unpack, rows are positions and
   columns are channels. A chunk of 16 bytes along channels is aligned. Along positions, chunks or their halves are.

   A block transposes ROWS x COLUMNS elements through shared memory. Its rows there have 256 bytes. The chunk c of a row
   is stored at chunk c ^ row / CHUNK % 8, so neither the chunks that a warp writes, nor the words of different rows that
   it reads, share a bank. */
#include "convgrad/problem.h"
#include "planes.cuh"
#include "ptx.cuh"

typedef PACKED packed;

/* transpose.py lists them in this order. */
struct Arguments {
    int64_t rows, columns, padded;
    int64_t tiles_down, tiles_across;
    int64_t source_image, source_row;
    int64_t target_image, target_column, target_plane;
    int64_t halves_read, halves_written; /* only halves of chunks are aligned */
};

constexpr int THREADS = 256;
constexpr int ROWS = 64, ROW_BYTES = 256, COLUMNS = ROW_BYTES / sizeof(storage);
constexpr int READ = 16 / sizeof(storage); /* columns of a chunk that is read */
constexpr int CHUNK = 16 / sizeof(packed); /* rows of a chunk that is written */
constexpr int WORD = 4 / sizeof(storage);  /* columns of a word of shared memory */
constexpr int CHUNKS = ROW_BYTES / 16, WORDS = ROW_BYTES / 4;
constexpr int READS = ROWS * CHUNKS / THREADS; /* of a thread, all in flight at once */
constexpr int WRITES = ROWS / CHUNK * WORDS / THREADS;

__device__ inline int chunk_place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ row / CHUNK % 8);
}

/* A chunk of 16 bytes, and the number of its elements that exist: all, none, or the first half. */
__device__ inline void load_chunk(uint4 &chunk, const storage *from, int64_t exist, bool in_halves)
{
    chunk = {0, 0, 0, 0};
    if (!in_halves) {
        if (exist > 0)
            chunk = *reinterpret_cast<const uint4 *>(from);
        return;
    }
    uint2 halves[2] = {{0, 0}, {0, 0}};
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (exist > i * (READ / 2))
            halves[i] = *reinterpret_cast<const uint2 *>(from + i * (READ / 2));
    chunk = {halves[0].x, halves[0].y, halves[1].x, halves[1].y};
}

__device__ inline void store_chunk(packed *to, const uint4 &chunk, int64_t exist, bool in_halves)
{
    if (!in_halves) {
        if (exist > 0)
            store_vector(to, chunk);
        return;
    }
    if (exist > 0)
        store_vector(to, uint2{chunk.x, chunk.y});
    if (exist > CHUNK / 2)
        store_vector(to + CHUNK / 2, uint2{chunk.z, chunk.w});
}

extern "C" __global__ void
__launch_bounds__(THREADS) transpose(const storage *__restrict__ source, packed *__restrict__ target,
                                     const __grid_constant__ Arguments arguments)
{
    __shared__ union {
        uint4 chunks[ROWS * CHUNKS];
        unsigned words[ROWS * WORDS];
    } tile;

    const unsigned across = unsigned(arguments.tiles_across), down = unsigned(arguments.tiles_down);
    const int64_t first_column = int64_t(blockIdx.x % across) * COLUMNS;
    const int64_t first_row = int64_t(blockIdx.x / across % down) * ROWS, image = blockIdx.x / across / down;
    const int64_t rows_left = arguments.rows - first_row, columns_left = arguments.columns - first_column;
    source += image * arguments.source_image + first_row * arguments.source_row + first_column;
    target += image * arguments.target_image + first_column * arguments.target_column + first_row;

    uint4 read[READS];
#pragma unroll
    for (int i = 0; i < READS; i++) {
        const int number = threadIdx.x + i * THREADS, row = number / CHUNKS, column = number % CHUNKS * READ;
        load_chunk(read[i], source + row * arguments.source_row + column, row < rows_left ? columns_left - column : 0,
                   arguments.halves_read);
    }
#pragma unroll
    for (int i = 0; i < READS; i++) {
        const int number = threadIdx.x + i * THREADS;
        tile.chunks[chunk_place(number / CHUNKS, number % CHUNKS)] = read[i];
    }
    __syncthreads();
    const int64_t padded_left = arguments.padded - first_row;
#pragma unroll
    for (int i = 0; i < WRITES; i++) {
        const int number = threadIdx.x + i * THREADS;
        const int row = number % (ROWS / CHUNK) * CHUNK, word = number / (ROWS / CHUNK);
        union {
            unsigned word;
            storage of[WORD];
        } words[CHUNK];
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            words[k].word = tile.words[chunk_place(row + k, word / 4) * 4 + word % 4];
#pragma unroll
        for (int j = 0; j < WORD; j++) {
            const int column = word * WORD + j;
            if (column >= columns_left)
                continue;
            union {
                packed values[2];
                unsigned word;
            } pairs[PLANES][CHUNK / 2];
#pragma unroll
            for (int k = 0; k < CHUNK; k++) {
                packed planes[PLANES];
                split(planes, words[k].of[j]);
#pragma unroll
                for (int plane = 0; plane < PLANES; plane++)
                    pairs[plane][k / 2].values[k % 2] = planes[plane];
            }
#pragma unroll
            for (int plane = 0; plane < PLANES; plane++) {
                const uint4 chunk = {pairs[plane][0].word, pairs[plane][1].word, pairs[plane][2].word,
                                     pairs[plane][3].word};
                store_chunk(target + plane * arguments.target_plane + column * arguments.target_column + row, chunk,
                            padded_left - row, arguments.halves_written);
            }
        }
    }
}
