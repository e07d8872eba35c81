"""Problems of many small groups, side by side: each lane of a vector is an output channel, whatever its group.

Lane l is output channel l % outputs of group l // outputs, and takes the channels i of its own group. A tile multiplies
vectors with vectors, so a source needs a vector for each i. The spreading tile makes them in registers, of one that has
the channels of the groups side by side; its vectors end with a group. Where it does, or a group has one channel, and
the lanes are adjacent in memory, source and target serve as they are. Else a task copies the *part* of the source that
its box of positions sees,

    part[d][h][w][i][lane] = source(lane // outputs, i, d, h, w)        widened
    part[d][h][w][group][i] = source(group, i, d, h, w)                 where it is spread, perhaps in pairs of i

and the sums of its box go to a *result* [d][h][w][lane], which is copied in the end. The order of a sum is the same.
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
    int64_t x_lane, y_lane  # strides of channels, the groups' included
    int64_t block, blocks  # lanes of a task
    bint spreads, pairs  # whether the spreading tile makes a vector for each channel, or for each pair of them
    int64_t words  # of a group: its channels, or pairs of them
    int64_t vectors, x_vector, y_vector  # of a block of lanes; from one to the next, in the source and in the target
    int64_t x_size[3]
    int64_t y_size[3]
    int64_t extent[3]  # positions of a box
    int64_t boxes[3]
    int64_t box_count  # in one image
    int64_t heights, bands  # as in Blocks
    int64_t source_step[3]
    int64_t target_step[3]
    int64_t low[3]  # of the source that position 0 sees, and high, one beyond
    int64_t high[3]
    bint x_in_place, y_in_place
    int64_t prefetch  # as in Blocks, where the source is read in place
    bint streamed  # the target is so large that it is stored past the cache
    bint incomplete  # the steps do not reach all of the target: it is zero there
    int64_t part_size, plain_size, result_size  # elements of a task's memory
    bint same_shuffle  # an expansion takes each vector from one vector, by one permutation for all
    bint two_vectors  # an expansion takes each vector from two vectors side by side
    int32_t *expansion  # where lane l takes channel i from, in those of a position or in their vector: [i][lane]

cdef struct LaneBox:
    int64_t image, lane, lanes
    int64_t begin[3]  # positions
    int64_t count[3]
    int64_t source[3]  # what it sees: begin and extent
    int64_t source_count[3]
    int64_t target[3]  # what it makes
    int64_t target_count[3]


cdef inline void lay_out_rows(Tensor *t, const int64_t *extent, int64_t pitch) noexcept nogil:
    t.batch, t.group, t.channel = 0, 0, 1
    t.axis[2] = pitch
    t.axis[1] = t.axis[2] * extent[2]
    t.axis[0] = t.axis[1] * extent[1]


cdef inline void describe_vectors(Lanes *c, const Blocks *blocks, compute kind) noexcept nogil:
    """How lanes and channels fill vectors: those of the spreading tile have whole groups alone."""
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
    """Elements of a position, for what the vectors of a block read or write, ``step`` apart: the last one is whole."""
    cdef int64_t pitch = whole_vectors((c.vectors - 1) * step, kind) + vector_length(kind)
    return staggered(pitch, sizeof(compute)) if c.spreads else pitch


cdef inline void describe_lanes(
    Lanes *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const Step *steps, int64_t count, const Blocks *blocks, compute kind,
) noexcept nogil:
    """All but the table; the steps of a problem differ in their taps, and visit the target in turns."""
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
        # Vectors are loaded and stored whole, so no task may end inside one.
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
            # The last expansion of a partial block may look up to a vector of lanes further, or at two vectors.
            c.plain_size = seen[2] * whole_vectors(count_blocks(c.block, c.outputs) * c.channels, kind)
            c.plain_size += whole_vectors(1, kind) * max(c.channels, <int64_t>2)
    c.streamed = c.y_in_place and blocks.nontemporal
    c.prefetch = blocks.prefetch if c.x_in_place else 0
    if not c.y_in_place:
        c.result_size = c.result.axis[0] * made[0]
    elif c.streamed:
        c.result_size = c.extent[2] * whole_vectors(c.block, kind)
    c.same_shuffle = c.channels == c.outputs and whole_vectors(1, kind) % c.channels == 0
    # A vector's lanes are those of at most so many groups.
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
    """Box ``index`` of all: lanes innermost, then width, height, depth, images."""
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
    """Boxes of all images, where so many bands, one below the other, count as one. With bands, rows are whole."""
    return c.batch * (c.box_count if c.bands == 1 else c.boxes[0] * count_blocks(c.boxes[1], c.bands))


cdef inline int64_t first_band(const Lanes *c, int64_t whole) noexcept nogil:
    """The first of what counts as one."""
    cdef int64_t rows = count_blocks(c.boxes[1], c.bands)
    return whole if c.bands == 1 else whole // rows * c.boxes[1] + whole % rows * c.bands


cdef inline int64_t origin_of(const Tensor *t, const int64_t *begin) noexcept nogil:
    return begin[0] * t.axis[0] + begin[1] * t.axis[1] + begin[2] * t.axis[2]
