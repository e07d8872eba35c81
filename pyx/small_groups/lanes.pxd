"""Layout of problems with many small groups: each lane of a vector is one output channel of some group.

Lane l is output channel l % outputs of group l // outputs. It reads the channels i of its own group. A tile multiplies
vectors by vectors, so it needs a vector of the source for each i. The spreading tile makes these vectors in registers,
from one vector that holds the channels of neighbouring groups; its vectors hold whole groups only. If the spreading
tile is used, or groups have one channel, and lanes are adjacent in memory, source and target can be used in place.
Otherwise a task copies its box's *part* of the source:

    part[d][h][w][i][lane] = source(lane // outputs, i, d, h, w)        widened
    part[d][h][w][group][i] = source(group, i, d, h, w)                 for the spreading tile, perhaps in pairs of i

The sums of the box go to a *result* [d][h][w][lane], which is copied to the target at the end. The order of a sum is
the same in all cases.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t

from base.memory cimport count_blocks
from base.problem cimport conv_axis
from base.scalar cimport compute, scalar
from base.tensor cimport Tensor, describe_filter, describe_tensor
from copy.pairs cimport words_of
from copy.window cimport staggered
from direct.blocks cimport COPIES, Blocks, Step
from parallel.tasks cimport team
from small_groups.runs cimport fits_tables
from tile.ukernel cimport vector_length, whole_vectors

cdef struct Lanes:
    Tensor x, w, y  # source, filter, target
    Tensor part, result  # their copies in a task's memory
    team *workers
    int64_t batch, groups, channels, outputs, lanes
    int64_t x_lane, y_lane  # strides between channels, also across groups
    int64_t block, blocks  # lanes of a task
    bint spreads, pairs  # whether the spreading tile is used, and whether it takes pairs of channels
    int64_t words  # channels of a group, or pairs of channels
    int64_t vectors, x_vector, y_vector  # vectors of a block of lanes; elements between them in source and target
    int64_t x_size[3]
    int64_t y_size[3]
    int64_t extent[3]  # positions of a box
    int64_t boxes[3]
    int64_t box_count  # in one image
    int64_t heights, bands  # as in Blocks
    int64_t source_step[3]
    int64_t target_step[3]
    int64_t low[3]  # position 0 reads the source from low to high - 1
    int64_t high[3]
    bint x_in_place, y_in_place
    int64_t prefetch  # as in Blocks, if the source is read in place
    bint streamed  # the target is so large that non-temporal stores write it
    bint incomplete  # the steps do not reach all of the target, which is zero elsewhere
    int64_t part_size, plain_size, result_size  # elements of a task's memory
    bint same_shuffle  # an expansion reads each vector from one vector, and all have the same permutation
    bint two_vectors  # an expansion reads each vector from two adjacent vectors
    int32_t *expansion  # [i][lane]: index of the lane's channel i among the channels of a position or of a vector

cdef struct LaneBox:
    int64_t image, lane, lanes
    int64_t begin[3]  # positions
    int64_t count[3]
    int64_t source[3]  # its part of the source: begin and extent
    int64_t source_count[3]
    int64_t target[3]  # its part of the target: begin and extent
    int64_t target_count[3]


cdef inline void lay_out_rows(Tensor *t, const int64_t *extent, int64_t pitch) noexcept nogil:
    t.batch, t.group, t.channel = 0, 0, 1
    t.axis[2] = pitch
    t.axis[1] = t.axis[2] * extent[2]
    t.axis[0] = t.axis[1] * extent[1]


cdef inline void describe_vectors(Lanes *c, const Blocks *blocks, compute kind) noexcept nogil:
    """Set the vectors of lanes and channels. Vectors of the spreading tile hold whole groups only."""
    cdef int64_t groups
    c.block = blocks.outputs
    c.blocks = count_blocks(c.lanes, c.block)
    c.spreads, c.pairs, c.words = blocks.spreads > 0, blocks.pairs, words_of(c.channels, blocks.pairs)
    c.x_vector = c.y_vector = vector_length(kind)
    if c.spreads:
        groups = min(vector_length(kind) // c.words, vector_length(kind) // c.outputs)
        c.x_vector, c.y_vector = groups * c.words, groups * c.outputs
    c.vectors = count_blocks(c.block, c.y_vector)
    c.heights, c.bands = blocks.heights, blocks.bands


cdef inline int64_t read_by_vectors(const Lanes *c, int64_t step, compute kind) noexcept nogil:
    """Elements of a position that hold the vectors of a block, ``step`` elements apart; the last vector is whole."""
    cdef int64_t pitch = whole_vectors((c.vectors - 1) * step, kind) + vector_length(kind)
    return staggered(pitch, sizeof(compute)) if c.spreads else pitch


cdef inline void describe_lanes(
    Lanes *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const Step *steps, int64_t count, const Blocks *blocks, compute kind,
) noexcept nogil:
    """Set everything except the table. The steps of a problem are stride phases: they differ in taps and positions."""
    cdef int axis
    cdef int64_t i, most, pad
    cdef int64_t seen[3]
    cdef int64_t made[3]
    cdef const conv_axis *a
    describe_tensor(&c.x, source.strides, sizeof(scalar))
    describe_filter(&c.w, filter.strides, sizeof(scalar))
    describe_tensor(&c.y, target.strides, sizeof(scalar))
    c.batch, c.groups, c.channels, c.outputs = source.shape[0], source.shape[1], filter.shape[2], filter.shape[1]
    c.lanes = c.groups * c.outputs
    c.x_lane = c.x.group if c.channels == 1 else c.x.channel
    c.y_lane = c.y.group if c.outputs == 1 else c.y.channel
    describe_vectors(c, blocks, kind)
    c.box_count = 1
    for axis in range(3):
        c.x_size[axis], c.y_size[axis] = source.shape[3 + axis], target.shape[3 + axis]
        c.extent[axis] = steps[0].axis[axis].positions
        c.source_step[axis] = steps[0].walk.axis[axis].source_step
        c.target_step[axis] = steps[0].walk.axis[axis].target_step
        most, c.low[axis], c.high[axis] = 0, INT32_MAX, -INT32_MAX
        for i in range(count):
            a = &steps[i].walk.axis[axis]
            most = max(most, a.positions)
            if a.taps:
                pad = (a.taps - 1) * a.source_tap
                c.low[axis] = min(c.low[axis], a.source_begin + min(pad, <int64_t>0))
                c.high[axis] = max(c.high[axis], a.source_begin + max(pad, <int64_t>0) + 1)
        if c.high[axis] < c.low[axis]:
            c.low[axis] = c.high[axis] = 0
        c.boxes[axis] = count_blocks(most, c.extent[axis])
        c.box_count *= c.boxes[axis]
        seen[axis] = min(c.x_size[axis], (c.extent[axis] - 1) * c.source_step[axis] + c.high[axis] - c.low[axis])
        made[axis] = min(c.y_size[axis], (c.extent[axis] + 1) * c.target_step[axis])
    c.x_in_place = c.y_in_place = False
    pad = read_by_vectors(c, c.y_vector, kind)
    if scalar is compute:
        # Vectors are loaded and stored whole, so no task may end inside a vector.
        c.y_in_place = c.y_lane == 1 and c.block == whole_vectors(c.block, kind) and blocks.spreads != COPIES
        c.y_in_place = c.y_in_place and c.y_vector == vector_length(kind) and c.lanes == whole_vectors(c.lanes, kind)
        c.x_in_place = (c.spreads or c.outputs == 1) and c.channels == c.outputs and c.x_lane == 1
        for i in range(count):
            c.y_in_place = c.y_in_place and fits_tables(&steps[i].walk, &c.x, &c.y, c.extent[2])
        c.x_in_place = c.x_in_place and c.y_in_place
    lay_out_rows(&c.part, seen, read_by_vectors(c, c.x_vector, kind) if c.spreads else c.channels * pad)
    lay_out_rows(&c.result, made, pad)
    c.part_size = c.plain_size = c.result_size = 0
    if not c.x_in_place:
        c.part_size = c.part.axis[0] * seen[0]
        if not c.spreads and (c.channels > 1 or c.outputs > 1):
            # The last expansion of a partial block may read up to a vector of lanes beyond it, or two vectors.
            c.plain_size = seen[2] * whole_vectors(count_blocks(c.block, c.outputs) * c.channels, kind)
            c.plain_size += whole_vectors(1, kind) * max(c.channels, <int64_t>2)
    c.streamed = c.y_in_place and blocks.nontemporal
    c.prefetch = blocks.prefetch if c.x_in_place else 0
    if not c.y_in_place:
        c.result_size = c.result.axis[0] * made[0]
    elif c.streamed:
        c.result_size = c.extent[2] * whole_vectors(c.block, kind)
    c.same_shuffle = c.channels == c.outputs and whole_vectors(1, kind) % c.channels == 0
    # The lanes of a vector belong to at most ceil((length - 1) / outputs) + 1 groups.
    c.two_vectors = (count_blocks(whole_vectors(1, kind) - 1, c.outputs) + 1) * c.channels <= 2 * whole_vectors(1, kind)
    c.incomplete = False


cdef inline int64_t expansion_size(const Lanes *c, compute kind) noexcept nogil:
    return c.words * (vector_length(kind) if c.spreads else whole_vectors(c.block, kind))


cdef inline void make_expansion(Lanes *c, int32_t *table, compute kind) noexcept nogil:
    cdef int64_t i, lane, pad = whole_vectors(c.block, kind), lanes = c.block
    if c.spreads:
        pad, lanes = vector_length(kind), c.y_vector
    c.expansion = table
    for i in range(c.words):
        for lane in range(pad):
            table[i * pad + lane] = <int32_t>(lane // c.outputs * c.words + i if lane < lanes else 0)


cdef inline void find_lane_box(LaneBox *box, const Lanes *c, int64_t index) noexcept nogil:
    """Find box number ``index``. Lanes vary fastest, then width, height, depth, images."""
    cdef int axis
    cdef int64_t i, end
    box.lane = index % c.blocks * c.block
    box.lanes = min(c.block, c.lanes - box.lane)
    index = index // c.blocks
    for axis in range(2, -1, -1):
        i = index % c.boxes[axis]
        index = index // c.boxes[axis]
        box.begin[axis], box.count[axis] = i * c.extent[axis], c.extent[axis]
        end = min(c.x_size[axis], (box.begin[axis] + c.extent[axis] - 1) * c.source_step[axis] + c.high[axis])
        box.source[axis] = max(<int64_t>0, box.begin[axis] * c.source_step[axis] + c.low[axis])
        box.source_count[axis] = max(<int64_t>0, end - box.source[axis])
        box.target[axis] = box.begin[axis] * c.target_step[axis]
        end = c.y_size[axis]
        if i + 1 < c.boxes[axis]:
            end = min(end, (box.begin[axis] + c.extent[axis]) * c.target_step[axis])
        box.target_count[axis] = max(<int64_t>0, end - box.target[axis])
    box.image = index


cdef inline int64_t whole_count(const Lanes *c) noexcept nogil:
    """Boxes of all images, where ``bands`` boxes, one below the other, count as one. With bands, rows are whole."""
    return c.batch * (c.box_count if c.bands == 1 else c.boxes[0] * count_blocks(c.boxes[1], c.bands))


cdef inline int64_t first_band(const Lanes *c, int64_t whole) noexcept nogil:
    """The first box of those that count as number ``whole``."""
    cdef int64_t rows = count_blocks(c.boxes[1], c.bands)
    return whole if c.bands == 1 else whole // rows * c.boxes[1] + whole % rows * c.bands


cdef inline int64_t origin_of(const Tensor *t, const int64_t *begin) noexcept nogil:
    return begin[0] * t.axis[0] + begin[1] * t.axis[1] + begin[2] * t.axis[2]
