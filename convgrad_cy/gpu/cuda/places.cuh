/* Addresses of the rows, depths and columns of simt.cu's matrix product in the three tensors.

   An address in the source is a sum of one part for a position and one for a tap with a channel (problem.h).
   Coordinates on the axes are such sums too. The including file defines: WGRAD, whether rows are taps with channels and
   depths are positions, or the reverse; RANK, the number of axes with coordinates (the last ones; the others have no
   padding); PADDED, whether some terms lie outside the source; TAPS_INNER, whether the tap or the channel is the faster
   digit. `Arguments` has sizes, strides and walks. */
#ifndef CONVGRAD_PLACES_CUH
#define CONVGRAD_PLACES_CUH

/* The contribution of a row or a depth to addresses and, for each axis, to a coordinate in the source. */
struct alignas(16) Place {
    int64_t source, other;
    unsigned coordinate[RANK];
};

/* A coordinate that stays outside every source, also after the addition of a legal coordinate (simt.py: its magnitude
   is below 2^29) or of another NOWHERE. */
#define NOWHERE (1u << 30)

struct Walk { /* one walk of each of the three axes */
    conv_axis axis[3];
};

__device__ inline void set_axis(Place &place, const Arguments &arguments, int axis, int64_t coordinate)
{
    place.source += coordinate * arguments.source[3 + axis];
    if (axis >= 3 - RANK)
        place.coordinate[axis - (3 - RANK)] = unsigned(coordinate);
}

__device__ inline Place place_of_position(const Arguments &arguments, const Walk &walk, unsigned index)
{
    Place place = {0, 0};
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
        const unsigned extent = unsigned(walk.axis[axis].positions), rest = index / extent;
        const int64_t position = index - rest * extent;
        set_axis(place, arguments, axis, conv_source(&walk.axis[axis], position, 0));
        place.other += conv_target(&walk.axis[axis], position) * arguments.target[3 + axis];
        index = rest;
    }
    place.source += index * arguments.source[0];
    place.other += index * arguments.target[0];
    return place;
}

__device__ inline Place place_of_tap(const Arguments &arguments, const Walk &walk, unsigned index)
{
    Place place = {0, 0};
    unsigned channel;
#if TAPS_INNER
    channel = index;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis)
        channel /= unsigned(walk.axis[axis].taps);
#else
    const unsigned channels = unsigned(arguments.channels), outer = index / channels;
    channel = index - outer * channels;
    index = outer;
#endif
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
        const unsigned extent = unsigned(walk.axis[axis].taps), rest = index / extent;
        const int64_t tap = index - rest * extent;
        set_axis(place, arguments, axis, tap * walk.axis[axis].source_tap);
        place.other += conv_filter(&walk.axis[axis], tap) * arguments.filter[3 + axis];
        index = rest;
    }
    place.source += channel * arguments.source[2];
    place.other += channel * arguments.filter[2];
    return place;
}

/* The place of a row or a depth. An index from `end` on gets the coordinate NOWHERE and the address of element 0. */
template <bool is_position>
__device__ inline Place place_of(const Arguments &arguments, const Walk &walk, unsigned index, unsigned end)
{
    if (index < end)
        return is_position ? place_of_position(arguments, walk, index) : place_of_tap(arguments, walk, index);
    Place nowhere = {0, 0};
    nowhere.coordinate[RANK - 1] = NOWHERE;
    return nowhere;
}

__device__ inline bool exists(const Place &place)
{
    return place.coordinate[RANK - 1] != NOWHERE;
}

/* The sizes of the source along the axes with coordinates. Without padding they are so large that only NOWHERE is
   outside. */
struct Sizes {
    unsigned of[RANK];
};

__device__ inline bool inside(const Sizes &size, const Place &row, const Place &depth)
{
    bool inside = row.coordinate[RANK - 1] + depth.coordinate[RANK - 1] < size.of[RANK - 1];
#if PADDED
#pragma unroll
    for (int axis = 0; axis < RANK - 1; ++axis)
        inside = inside & (row.coordinate[axis] + depth.coordinate[axis] < size.of[axis]);
#endif
    return inside;
}

/* The sum of the existing terms, in order, up to the first NaN. */
__device__ inline compute exact_sum(const storage *a, const storage *b, const Arguments &arguments, const Walk &walk,
                                    const Sizes &size, const Place &row, unsigned begin, unsigned end)
{
    compute sum = 0;
    for (unsigned index = begin; index < end && sum == sum; ++index) {
        const Place depth = place_of<WGRAD>(arguments, walk, index, end);
        if (inside(size, row, depth))
            sum = multiply_add(widen(a[row.source + depth.source]), widen(b[depth.other]), sum);
    }
    return sum;
}

/* A block's part of the work. It is in shared memory, because registers are needed for sums. */
struct Part {
    Walk walk;
    Sizes size;
    unsigned group, split;
    unsigned row_begin, rows, column_begin, columns, depth_begin, depth_end;
};

__device__ inline void set_part(Part &part, const Arguments &arguments, unsigned number)
{
    /* Column tiles are the fastest digit, so that tiles which read the same a run at the same time. Then come the
       walks, whose results are interleaved in memory. */
    part.columns = unsigned(arguments.columns);
    part.column_begin = number % unsigned(arguments.column_tiles) * TILE_COLUMNS;
    number /= unsigned(arguments.column_tiles);
    unsigned positions = unsigned(arguments.batch), taps = unsigned(arguments.channels);
    for (int axis = 2, begin = WALKS; axis >= 0; --axis) {
        const unsigned walks = unsigned(arguments.walks[axis]);
        begin -= int(walks);
        const conv_axis &walk = arguments.axis[begin + int(number % walks)];
        number /= walks;
        positions *= unsigned(walk.positions);
        taps *= unsigned(walk.taps);
        part.walk.axis[axis] = walk;
        if (axis >= 3 - RANK)
            part.size.of[axis - (3 - RANK)] = PADDED ? unsigned(walk.source_size) : NOWHERE / 2;
    }
    part.row_begin = number % unsigned(arguments.row_tiles) * TILE_ROWS;
    number /= unsigned(arguments.row_tiles);
    part.group = number % unsigned(arguments.groups);
    part.split = number / unsigned(arguments.groups);
    part.rows = WGRAD ? taps : positions;
    const unsigned depths = WGRAD ? positions : taps, split_depth = unsigned(arguments.split_depth);
    part.depth_begin = PARTIALS ? part.split * split_depth : 0;
    part.depth_end = PARTIALS ? min(depths, part.depth_begin + split_depth) : depths;
}

#endif
