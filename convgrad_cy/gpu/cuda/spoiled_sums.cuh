/* Sums of mma_wgrad.cu that are infinite or NaN, formed again from the terms that exist.

   A tile also multiplies the target by the zeros of padding. This is right for finite numbers, but infinity times zero
   is NaN. In one plane, nothing else is wrong. So a row needs its sums again only if its target is infinite or NaN at a
   position that sees padding. It does not need them if the target is also NaN at a position that sees none: then the
   whole row is NaN. Products of several planes, which are parts of numbers, are wrong for every infinity.

   One infinity spoils a whole row of a tile, with all positions of the split in each sum. So all threads form the sums
   of a row together. They tabulate some positions in shared memory. Then each thread adds the terms of a part of these
   positions for a chunk of columns, which are adjacent in memory and have one tap. The parts of a sum are added in their
   order. */
#ifndef CONVGRAD_SPOILED_SUMS_CUH
#define CONVGRAD_SPOILED_SUMS_CUH

#include "positions.cuh"
#include "ring.cuh"

constexpr int ROW_CHUNKS = TILE_ROWS / CHUNK, COLUMN_CHUNKS = TILE_COLUMNS / CHUNK;
constexpr int PARTS = THREADS / COLUMN_CHUNKS;
/* Loads of a thread that are in flight at once. */
constexpr int ROUND = 4;

struct Spoiled {
    struct {
        int64_t source; /* offset of tap 0 */
        int at[3];      /* coordinates of tap 0 in the source */
        sum_type target;
    } positions[THREADS];
    sum_type parts[PARTS][TILE_COLUMNS];
    unsigned rows[ROW_CHUNKS]; /* bits of the rows that are formed again */
};
static_assert(sizeof(Spoiled) <= STAGES * STAGE_BYTES, "it lies where the stages were");

union Chunk {
    uint4 all;
    element of[CHUNK];
};

__device__ inline void load_chunk(Chunk &chunk, const element *from)
{
    chunk.all = *reinterpret_cast<const uint4 *>(from);
}

/* The bits that any lane of the warp has. */
__device__ inline unsigned bits_of_warp(unsigned bits)
{
#pragma unroll
    for (int distance = 16; distance; distance /= 2)
        bits |= __shfl_xor_sync(~0u, bits, distance);
    return bits;
}

__device__ __noinline__ int64_t target_offset(const Arguments &arguments, unsigned position)
{
    unsigned place[3];
    int64_t offset = locate(arguments, position, place) * arguments.target.batch;
#pragma unroll
    for (int i = 0; i < 3; i++)
        offset += place[i] * arguments.target.axis[i];
    return offset;
}

/* Whether a tap of the filter lies outside of the source. */
__device__ __noinline__ bool sees_padding(const Arguments &arguments, unsigned position)
{
    unsigned place[3];
    locate(arguments, position, place);
    bool inside = true;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const conv_axis &axis = arguments.axes[i];
        inside = inside && conv_inside(&axis, conv_source(&axis, place[i], 0))
                 && conv_inside(&axis, conv_source(&axis, place[i], axis.taps - 1));
    }
    return !inside;
}

/* The rows of a chunk that may have wrong sums, as bits. All lanes of a warp call this for the same chunk, which begins
   at `target`. */
__device__ inline unsigned
wrong_rows(const element *target, const Arguments &arguments, unsigned begin, unsigned end, unsigned spoiled)
{
    if (PLANES > 1 || !spoiled)
        return spoiled;
    unsigned meets_padding = 0, is_nan = 0;
#pragma unroll 1
    for (unsigned first = begin + threadIdx.x % 32; first < end; first += 32 * ROUND) {
        Chunk chunks[ROUND];
#pragma unroll
        for (int i = 0; i < ROUND; i++) {
            const unsigned position = first + i * 32 < end ? first + i * 32 : first;
            load_chunk(chunks[i], target + target_offset(arguments, position));
        }
#pragma unroll
        for (int i = 0; i < ROUND; i++) {
            unsigned infinite = 0, nan = 0;
#pragma unroll
            for (int j = 0; j < CHUNK; j++) {
                const sum_type value = widen(chunks[i].of[j]);
                infinite |= unsigned(!is_finite(value)) << j;
                nan |= unsigned(value != value) << j;
            }
            if (infinite && first + i * 32 < end) {
                if (sees_padding(arguments, first + i * 32))
                    meets_padding |= infinite;
                else
                    is_nan |= nan;
            }
        }
    }
    return bits_of_warp(meets_padding) & ~bits_of_warp(is_nan) & spoiled;
}

/* Tabulates the position of this thread for a row, which begins at `target`. */
__device__ inline void tabulate(Spoiled &spoiled, const element *target, const Arguments &arguments, unsigned position)
{
    auto &to = spoiled.positions[threadIdx.x];
    unsigned place[3];
    to.source = locate(arguments, position, place) * arguments.source.batch;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        to.at[i] = int(conv_source(&arguments.axes[i], place[i], 0));
        to.source += to.at[i] * arguments.source.axis[i];
    }
    to.target = whole(target + target_offset(arguments, position), arguments.target_plane);
}

/* A part of the sums of a chunk of columns at one tap. */
struct ColumnChunk {
    const element *source; /* at the tap and the first channel, without the offset of a position */
    int tap_at[3];
    sum_type sums[CHUNK];

    __device__ inline ColumnChunk(const element *source, const Arguments &arguments, unsigned column) : source(source)
    {
        int tap[3];
        locate_tap(arguments, column, tap);
        this->source += column % unsigned(arguments.source_padded);
#pragma unroll
        for (int i = 0; i < 3; i++) {
            tap_at[i] = tap[i] * int(arguments.axes[i].source_tap);
            this->source += tap_at[i] * arguments.source.axis[i];
        }
#pragma unroll
        for (int j = 0; j < CHUNK; j++)
            sums[j] = 0;
    }

    /* Adds the terms of every PARTS-th of the first `count` tabulated positions, from `part` on. */
    __device__ inline void add(const Spoiled &spoiled, const Arguments &arguments, int part, int count)
    {
#pragma unroll 1
        for (int first = part; first < count; first += ROUND * PARTS) {
            Chunk chunks[ROUND][PLANES];
            bool exists[ROUND];
#pragma unroll
            for (int i = 0; i < ROUND; i++) {
                const int number = first + i * PARTS;
                const auto &position = spoiled.positions[number < count ? number : first];
                exists[i] = number < count;
#pragma unroll
                for (int k = 0; k < 3; k++)
                    exists[i] &= unsigned(position.at[k] + tap_at[k]) < unsigned(arguments.axes[k].source_size);
                if (exists[i])
#pragma unroll
                    for (int plane = 0; plane < PLANES; plane++)
                        load_chunk(chunks[i][plane], source + position.source + plane * arguments.source_plane);
            }
#pragma unroll
            for (int i = 0; i < ROUND; i++)
                if (exists[i]) {
                    const sum_type target = spoiled.positions[first + i * PARTS].target;
#pragma unroll
                    for (int j = 0; j < CHUNK; j++) {
                        sum_type value = 0;
#pragma unroll
                        for (int plane = PLANES - 1; plane >= 0; plane--)
                            value += widen(chunks[i][plane].of[j]);
                        sums[j] = multiply_add(target, value, sums[j]);
                    }
                }
        }
    }
};

/* Forms the wrong sums of a tile again. All multiplying threads call this. `source` and `target` begin with the group,
   and the sums have the positions begin to end. sum_at(row, column) is the address of a sum of the tile, or null. */
template <typename SumAt>
__device__ inline void
form_again(unsigned char *shared, const element *source, const element *target, const Arguments &arguments,
           unsigned begin, unsigned end, int first_row, unsigned first_column, SumAt sum_at)
{
    Spoiled &spoiled = *reinterpret_cast<Spoiled *>(shared);
    const auto is_spoiled = [&](int row, int column) {
        const sum_type *const sum = sum_at(row, column);
        return sum && !is_finite(*sum);
    };
#pragma unroll 1
    for (int chunk = threadIdx.x / 32; chunk < ROW_CHUNKS; chunk += THREADS / 32) {
        unsigned rows = 0;
#pragma unroll 4
        for (int i = threadIdx.x % 32; i < CHUNK * TILE_COLUMNS; i += 32)
            rows |= unsigned(is_spoiled(chunk * CHUNK + i / TILE_COLUMNS, i % TILE_COLUMNS)) << i / TILE_COLUMNS;
        rows = wrong_rows(target + first_row + chunk * CHUNK, arguments, begin, end, bits_of_warp(rows));
        if (threadIdx.x % 32 == 0)
            spoiled.rows[chunk] = rows;
    }
    vote_of_multipliers(false);
    const int chunk = threadIdx.x % COLUMN_CHUNKS, part = threadIdx.x / COLUMN_CHUNKS;
#pragma unroll 1
    for (int row = 0; row < TILE_ROWS; row++) {
        if (!(spoiled.rows[row / CHUNK] >> row % CHUNK & 1))
            continue;
        bool adds = false; /* such a chunk has a column that exists, so all of it can be read */
#pragma unroll 1
        for (int j = 0; j < CHUNK; j++)
            adds |= is_spoiled(row, chunk * CHUNK + j);
        adds &= part < PARTS;
        ColumnChunk columns(source, arguments, first_column + chunk * CHUNK);
#pragma unroll 1
        for (unsigned first = begin; first < end; first += THREADS) {
            vote_of_multipliers(false); /* all threads have read the previous positions */
            if (first + threadIdx.x < end)
                tabulate(spoiled, target + first_row + row, arguments, first + threadIdx.x);
            vote_of_multipliers(false);
            if (adds)
                columns.add(spoiled, arguments, part, int(end - first < THREADS ? end - first : THREADS));
        }
        if (part < PARTS)
#pragma unroll
            for (int j = 0; j < CHUNK; j++)
                spoiled.parts[part][chunk * CHUNK + j] = columns.sums[j];
        vote_of_multipliers(false);
#pragma unroll 1
        for (int column = threadIdx.x; column < TILE_COLUMNS; column += THREADS) {
            sum_type sum = 0;
#pragma unroll 1
            for (int i = 0; i < PARTS; i++)
                sum += spoiled.parts[i][column];
            if (is_spoiled(row, column))
                *sum_at(row, column) = sum;
        }
    }
}

#endif
