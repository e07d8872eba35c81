"""Winograd's algorithm on boxes of tiles: what fprop, dgrad and wgrad have in common.

A tile is m outputs of a walk on each axis; with r taps it sees n = m + r - 1 elements of the source there. Windows are
those of window.pxd, filled for all tiles of a box; transforms (cook_toom.py) run across channels, axis after axis. The
walks here have taps one element apart, counted as positions are: ``source_tap == source_step``.
"""

from libc.stdint cimport int64_t, uint32_t

from blocks cimport count_blocks, in_lines
from problem cimport conv_axis, conv_walk
from scalar cimport bf16, f16
from tensor cimport find_tap
from window cimport LINE_BYTES, Box, Window

cdef extern from "winograd.h" nogil:
    enum:
        WINOGRAD_LANES
        WINOGRAD_MOST_POINTS
    ctypedef void (*winograd_transform)(
        const float *of, int64_t of_step, int64_t of_line, float *to, int64_t to_step, int64_t to_line, int64_t lines,
        int64_t vectors) noexcept nogil
    const winograd_transform winograd_sources[9]
    const winograd_transform winograd_filters[9][9]
    const winograd_transform winograd_results[9][9]
    uint32_t winograd_largest(const float *of, int64_t count, uint32_t largest)

ctypedef fused stored:  # storage types whose compute type is float
    f16
    bf16
    float

cdef enum:
    LINE_LANES = LINE_BYTES // 4  # what is written lies in whole lines of the cache, however narrow vectors are
    # Bits of 2^-100. Where the largest magnitude is below, quotients in the transforms may leave the normal numbers;
    # from those of infinity on, a result has to be formed from its own terms alone. Then the direct algorithm is used.
    LEAST_BITS = 27 << 23
    INFINITE_BITS = 255 << 23

cdef struct TileStep:  # a row of winograd.TilePlan.steps, field for field
    conv_walk walk
    int64_t points[3]  # n of each axis
    int64_t outputs[3]  # m of each axis
    int64_t tiles[3]  # of a whole box
    int64_t held[3]  # taps that the filter has; those of the walk beyond are zeros
    int64_t added  # steps, from the first of them on, whose sums are added

cdef struct TileBlocks:  # winograd.TileBlocks, field for field
    int64_t threads
    int64_t images  # of a box
    int64_t chunk  # channels of a window
    int64_t outputs  # output channels of a block
    int64_t group  # output channels whose transformed filters are in memory at a time; 0: each task transforms its own
    int64_t shared  # whether transformed tiles of the source are kept for all blocks of outputs
    int64_t slices  # of the boxes in wgrad, summed in order
    int64_t span  # chunks of all added steps that a task of fprop or dgrad transforms before it multiplies them

cdef struct Transform:  # of tiles, separably
    winograd_transform along[3]
    int64_t taken[3]  # values on each axis before
    int64_t given[3]  # and after
    int64_t step[3]  # from tile to tile, before

cdef struct Tiling:  # the boxes of one step
    conv_walk walk
    int64_t points[3]
    int64_t outputs[3]
    int64_t tiles[3]  # of a box
    int64_t all_tiles[3]  # of an image
    int64_t images, batch
    int64_t boxes[4]
    int64_t box_count, box_tiles, point_count


cdef inline void note_largest(uint32_t *largest, int thread, int which, uint32_t value) noexcept nogil:
    """Keep the largest magnitude that a thread has seen of an operand (0) or the result (1): a cache line for each."""
    largest += thread * 32 + which * 16
    largest[0] = max(largest[0], value)


cdef inline bint stands(const uint32_t *largest, int threads) noexcept nogil:
    """Whether operand and result are in the algorithm's range; zeros alone are."""
    cdef int which, thread
    cdef uint32_t most
    for which in range(2):
        most = 0
        for thread in range(threads):
            most = max(most, largest[thread * 32 + which * 16])
        if most != 0 and (most < LEAST_BITS or most >= INFINITE_BITS):
            return False
    return True


cdef inline void describe_tiling(Tiling *t, const TileStep *step, int64_t images, int64_t batch) noexcept nogil:
    cdef int axis
    t.walk = step.walk
    t.images, t.batch = images, batch
    t.boxes[0] = (batch + images - 1) // images
    t.box_count, t.box_tiles, t.point_count = t.boxes[0], images, 1
    for axis in range(3):
        t.points[axis], t.outputs[axis], t.tiles[axis] = step.points[axis], step.outputs[axis], step.tiles[axis]
        t.all_tiles[axis] = (t.walk.axis[axis].positions + t.outputs[axis] - 1) // t.outputs[axis]
        t.boxes[1 + axis] = (t.all_tiles[axis] + t.tiles[axis] - 1) // t.tiles[axis]
        t.box_count *= t.boxes[1 + axis]
        t.box_tiles *= t.tiles[axis]
        t.point_count *= t.points[axis]


cdef inline int64_t find_tiles(const Tiling *t, int64_t index, Box *box) noexcept nogil:
    """Box number ``index``, counted in tiles; how many it has."""
    cdef int axis
    cdef int64_t whole, limit
    for axis in range(3, -1, -1):
        whole = t.images if axis == 0 else t.tiles[axis - 1]
        limit = t.batch if axis == 0 else t.all_tiles[axis - 1]
        box.begin[axis] = index % t.boxes[axis] * whole
        box.count[axis] = min(whole, limit - box.begin[axis])
        index = index // t.boxes[axis]
    return box.count[0] * box.count[1] * box.count[2] * box.count[3]


cdef inline void elements_of(const Tiling *t, const Box *tiles, const Transform *f, Box *elements) noexcept nogil:
    """The positions that a box of tiles sees of a tensor which ``f`` transforms."""
    cdef int axis
    elements.begin[0], elements.count[0] = tiles.begin[0], tiles.count[0]
    for axis in range(3):
        elements.begin[1 + axis] = tiles.begin[1 + axis] * f.step[axis]
        elements.count[1 + axis] = (tiles.count[1 + axis] - 1) * f.step[axis] + f.taken[axis]


cdef inline int64_t lay_out_tiles(Window *m, const Tiling *t, const Transform *f, int64_t channels) noexcept nogil:
    """Describe the window of a whole box with channels adjacent; its elements, with a vector behind the last."""
    cdef int axis
    cdef int64_t size = channels
    m.images, m.channels, m.channel_pitch, m.pairs = t.images, channels, 1, False
    for axis in range(2, -1, -1):
        m.axis[axis].positions = m.axis[axis].extent = (t.tiles[axis] - 1) * f.step[axis] + f.taken[axis]
        # Every position is copied by itself: the one tap of the walk that the window is filled along.
        m.axis[axis].apart, m.axis[axis].step, m.axis[axis].tap, m.axis[axis].begin = 1, 1, 0, 0
        m.pitch[axis] = size
        size *= m.axis[axis].extent
    m.batch_pitch = size
    return in_lines((size * t.images + WINOGRAD_LANES) * sizeof(float)) // sizeof(float)


cdef inline bint is_held(const TileStep *step, int64_t t) noexcept nogil:
    """Whether the filter has tap t."""
    cdef int64_t tap[3]
    find_tap(&step.walk, t, tap)
    return tap[0] < step.held[0] and tap[1] < step.held[1] and tap[2] < step.held[2]


cdef inline void source_walk(conv_walk *walk, const conv_walk *of) noexcept nogil:
    """A walk of one tap through all of the source that the taps of ``of`` reach."""
    cdef int axis
    walk[0] = of[0]
    for axis in range(3):
        walk.axis[axis].taps = 1


cdef inline void target_walk(conv_walk *walk, const conv_walk *of) noexcept nogil:
    """A walk of one tap whose source is the target of ``of``; beyond its positions there is nothing."""
    cdef int axis
    cdef conv_axis *a
    source_walk(walk, of)
    for axis in range(3):
        a = &walk.axis[axis]
        a.source_begin, a.source_step = a.target_begin, a.target_step
        a.source_size = (a.positions - 1) * a.target_step + a.target_begin + 1


cdef inline int64_t row_size(const Tiling *t, const Transform *f) noexcept nogil:
    """Elements of the buffer of ``transform_box``."""
    cdef int64_t columns = (t.tiles[2] - 1) * f.step[2] + f.taken[2]
    return in_lines((f.taken[1] + f.given[1]) * f.given[0] * columns * LINE_LANES * sizeof(float)) // sizeof(float)


cdef inline void transform_box(
    const Transform *f, const Box *tiles, const float *window, const Window *m, int64_t channels,
    float *to, int64_t to_point, int64_t to_strip, int64_t to_tile, float *buffer,
) noexcept nogil:
    """to[point][strip][tile][channel] of all tiles of a box, in the order batch, depth, height, width.

    A strip has as many channels as lie between tiles, and is ``to_strip`` elements from the next. For a line of
    channels at a time and a row of tiles: neighbours share what the transforms of the outer axes give.
    """
    cdef int64_t part, v, n, d, h, w, i, tile, vectors, lanes, columns = (tiles.count[3] - 1) * f.step[2] + f.taken[2]
    cdef int64_t pitch[3]
    cdef int axis
    cdef const float *of
    cdef float *second
    cdef float *line
    for part in range(count_blocks(channels, LINE_LANES)):
        v, tile = part * LINE_LANES, 0
        line = to + v // to_tile * to_strip + v % to_tile
        vectors = count_blocks(min(<int64_t>LINE_LANES, channels - v), WINOGRAD_LANES)
        lanes = vectors * WINOGRAD_LANES
        second = buffer + f.given[0] * f.taken[1] * columns * lanes
        for n in range(tiles.count[0]):
            for d in range(tiles.count[1]):
                for h in range(tiles.count[2]):
                    for axis in range(3):
                        pitch[axis] = m.pitch[axis]
                    of = window + v + n * m.batch_pitch + d * f.step[0] * pitch[0] + h * f.step[1] * pitch[1]
                    if f.given[0] > 1:
                        for i in range(f.taken[1]):
                            f.along[0](of + i * pitch[1], pitch[0], pitch[2], buffer + i * columns * lanes,
                                       f.taken[1] * columns * lanes, lanes, columns, vectors)
                        of, pitch[2] = buffer, lanes
                        pitch[1] = columns * pitch[2]
                        pitch[0] = f.taken[1] * pitch[1]
                    if f.given[1] > 1:
                        for i in range(f.given[0]):
                            f.along[1](of + i * pitch[0], pitch[1], pitch[2], second + i * f.given[1] * columns * lanes,
                                       columns * lanes, lanes, columns, vectors)
                        of, pitch[2] = second, lanes
                        pitch[1] = columns * pitch[2]
                        pitch[0] = f.given[1] * pitch[1]
                    for w in range(tiles.count[3]):
                        for i in range(f.given[0]):
                            f.along[2](of + i * pitch[0] + w * f.step[2] * pitch[2], pitch[2], pitch[1],
                                       line + tile * to_tile + i * f.given[1] * f.given[2] * to_point, to_point,
                                       f.given[2] * to_point, f.given[1], vectors)
                        tile += 1


cdef inline void transform_one(
    const Transform *f, const float *of, const int64_t *of_pitch, float *to, const int64_t *to_pitch, int64_t vectors,
    float *buffer,
) noexcept nogil:
    """One tile of ``vectors`` vectors, from and to places with any distances on the three axes."""
    cdef int64_t i, lanes = vectors * WINOGRAD_LANES
    cdef int64_t pitch[3]
    cdef int axis
    cdef float *second = buffer + f.given[0] * f.taken[1] * f.taken[2] * lanes
    for axis in range(3):
        pitch[axis] = of_pitch[axis]
    if f.given[0] > 1 or f.taken[0] > 1:
        for i in range(f.taken[1]):
            f.along[0](of + i * pitch[1], pitch[0], pitch[2], buffer + i * f.taken[2] * lanes,
                       f.taken[1] * f.taken[2] * lanes, lanes, f.taken[2], vectors)
        of, pitch[2] = buffer, lanes
        pitch[1] = f.taken[2] * lanes
        pitch[0] = f.taken[1] * pitch[1]
    if f.given[1] > 1 or f.taken[1] > 1:
        for i in range(f.given[0]):
            f.along[1](of + i * pitch[0], pitch[1], pitch[2], second + i * f.given[1] * f.taken[2] * lanes,
                       f.taken[2] * lanes, lanes, f.taken[2], vectors)
        of, pitch[2] = second, lanes
        pitch[1] = f.taken[2] * lanes
        pitch[0] = f.given[1] * pitch[1]
    for i in range(f.given[0]):
        f.along[2](of + i * pitch[0], pitch[2], pitch[1], to + i * to_pitch[0], to_pitch[2], to_pitch[1], f.given[1],
                   vectors)


cdef inline int64_t tile_size(const Transform *f, int64_t vectors) noexcept nogil:
    """Elements of the buffer of ``transform_one``."""
    return (f.taken[1] + f.given[1]) * f.given[0] * f.taken[2] * vectors * WINOGRAD_LANES


cdef inline void describe_transform(
    Transform *f, const int64_t *points, const int64_t *taken, const int64_t *given, const int64_t *step,
    int kind,
) noexcept nogil:
    cdef int axis
    for axis in range(3):
        f.taken[axis], f.given[axis], f.step[axis] = taken[axis], given[axis], step[axis]
        if kind == 0:
            f.along[axis] = winograd_sources[points[axis]]
        elif kind == 1:
            f.along[axis] = winograd_filters[points[axis]][taken[axis]]
        else:
            f.along[axis] = winograd_results[points[axis]][given[axis]]
