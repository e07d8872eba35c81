/* The gradient of the filter on tensor cores, in partial sums that reduce.cu adds.

       partials[split][group][o][tap][c] = sum over p in split of  target[p][o] * source[p at tap][c]

   For each group this is a matrix product, o x positions by positions x (taps, c). Joined groups (joins.py) are one
   product, and only the sums whose o and c belong to one group are kept. The depth of the product is positions. They
   follow one another in memory, with adjacent channels, so tiles are "by depth" (tile.cuh), and ldmatrix transposes
   them. Operands are packed as for mma.cu. */
#include "position_boxes.cuh"
#include "position_copies.cuh"
#include "ring.cuh"
#include "spoiled_sums.cuh"

/* The sums of two neighbouring columns, which are stored together. */
struct alignas(2 * sizeof(sum_type)) Pair {
    sum_type of[2];
};

extern "C" __global__ void __launch_bounds__(ALL_THREADS, BLOCKS)
    wgrad(const element *__restrict__ source, const element *__restrict__ target, sum_type *__restrict__ partials,
          MAPS const __grid_constant__ Arguments arguments)
{
    DYNAMIC_SHARED(dynamic);
#if ENGINE
    __shared__ Ring ring;
    ring.make();
    __syncthreads();
#else
    __shared__ Place places[2][DEPTH];
#endif
    unsigned char *const shared = first_stage(dynamic);

    const unsigned across = unsigned(arguments.across);
    const int first_row = int(blockIdx.x / across * TILE_ROWS);
    const unsigned first_column = blockIdx.x % across * TILE_COLUMNS;
    const conv_axis *axes = arguments.axes;
    const int64_t positions = arguments.batch * axes[0].positions * axes[1].positions * axes[2].positions;
    const unsigned begin = unsigned(blockIdx.y * arguments.steps * DEPTH);
    const unsigned most = unsigned(arguments.steps * DEPTH);
    const unsigned left = unsigned(positions) - begin, count = left < most ? left : most;
    source += blockIdx.z * arguments.source.group;
    target += blockIdx.z * arguments.target.group;

    const int steps_here = int((count + DEPTH - 1) / DEPTH);
    Sums sums;
#if ENGINE
    Turn turn;
    if (!multiplies()) {
        give_registers<FEW_REGISTERS>();
        Boxes boxes(arguments, maps);
        boxes.start(begin, first_row, first_column);
        if (threadIdx.x == THREADS)
            fill(ring, turn, shared, steps_here, boxes);
        return;
    }
    take_registers<MANY_REGISTERS>();
    multiply_filled<true, true>(sums, ring, turn, shared, steps_here, [] {});
#else
    {
        Copies copies(arguments, places, begin, count);
        copies.start(source, target, first_row, first_column);
        multiply_all<true>(sums, shared, steps_here, copies);
    }
#endif

    const int64_t taps = axes[0].taps * axes[1].taps * axes[2].taps;
    const unsigned channels = unsigned(arguments.source_channels);
    partials +=
        (int64_t(blockIdx.y) * gridDim.z + blockIdx.z) * arguments.target_channels * taps * arguments.source_channels;
    /* The address of the sum of a row and a column of the tile, and the channel in the row's group. The channel is less
       than `channels` if there is such a sum. */
    const auto place_of = [&](int row, int column, unsigned &channel) {
        /* With the copy engine, 64 columns belong to one tap. */
        const unsigned at = first_column + column, begin_of_tap = ENGINE ? first_column + column / 64 * 64 : at;
        const unsigned tap = begin_of_tap / unsigned(arguments.source_padded);
        row += first_row;
        const unsigned group = row * unsigned(arguments.group_of_row) >> 16;
        channel = at - tap * unsigned(arguments.source_padded) - group * channels;
        sum_type *const to = partials + ((row * taps + tap) * arguments.source_channels + int(channel));
        if (row >= arguments.target_channels || tap >= taps)
            channel = channels;
        return to;
    };
    const bool even = channels % 2 == 0; /* then pairs are aligned, and both or none exist */
    bool finite = true;
    for_sums(sums, [&](int row, int column, const sum_type *pair) {
        unsigned channel;
        sum_type *const to = place_of(row, column, channel);
        finite &= is_finite(pair[0]) & is_finite(pair[1]);
        if (even) {
            if (channel < channels)
                *reinterpret_cast<Pair *>(to) = {pair[0], pair[1]};
        } else {
            if (channel < channels)
                to[0] = pair[0];
            if (channel + 1 < channels) /* also if the first belongs to the previous group */
                to[1] = pair[1];
        }
    });
    if (vote_of_multipliers(!finite))
        form_again(shared, source, target, arguments, begin, begin + count, first_row, first_column,
                   [&](int row, int column) {
                       unsigned channel;
                       sum_type *const sum = place_of(row, column, channel);
                       return channel < channels ? sum : nullptr;
                   });
}
