/* Where rows, depths and columns of the matrix product in simt.cu lie in the three tensors.

   A place in the source is a sum of one part for a position and one for a tap with a channel (problem.h), and so is its
   distance from the borders. Whoever includes this says by WGRAD which of the two is the row and which the depth, by RANK
   how many axes have coordinates (the last ones; the others have no padding), by PADDED whether any place is outside, and by
   TAPS_INNER whether the tap or the channel is the faster digit. `Arguments` has sizes, strides and walks. */
#ifndef CONVGRAD_PLACES_CUH
#define CONVGRAD_PLACES_CUH

/* What a row or a depth adds to places in memory and, for each axis, to a position in the source. */
struct alignas(16) Place {
    int64_t source, other;
    unsigned coordinate[RANK];
};

/* Added to a position that can be (simt.py: below 2^29 either way), or to another NOWHERE, it lies outside every source. */
#define NOWHERE (1u << 30)

struct Walk { /* of the three axes */
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

/* The place of a row or a depth below `end`. Others are nowhere, and at the first element. */
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

/* The sizes of the source along the axes that have coordinates; without padding only a place that is nowhere is outside. */
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

/* The sum of the terms that exist, one after the other, up to the first NaN. */
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

/* A block's part of the work. It lies in shared memory, for in registers it would take the place of sums. */
struct Part {
    Walk walk;
    Sizes size;
    unsigned group, split;
    unsigned row_begin, rows, column_begin, columns, depth_begin, depth_end;
};

__device__ inline void set_part(Part &part, const Arguments &arguments, unsigned number)
{
    /* Column tiles come first, so that those which read the same a are at work together; then the walks, which store
       between each other's elements. */
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
