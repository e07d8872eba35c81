"""Winograd's transforms (cook_toom.py) of one tile or a box of tiles.

Vectors lie along channels, and axes are transformed one after the other. A tile has m outputs on an axis. With r taps
it reads n = m + r - 1 elements of the source there.
"""

from libc.stdint cimport int64_t, uint32_t

from base.memory cimport count_blocks
from base.scalar cimport bf16, f16
from copy.window cimport Box, Window
from tile.ukernel cimport LINE_BYTES

cdef extern from "winograd/transform.h" nogil:
    enum:
        WINOGRAD_LANES
        WINOGRAD_MOST_POINTS
    ctypedef void (*winograd_transform)(
        const float *of, int64_t of_step, int64_t of_line, float *to, int64_t to_step, int64_t to_line, int64_t lines,
        int64_t vectors) noexcept nogil
    const winograd_transform winograd_sources[9]
    const winograd_transform winograd_filters[9][9]
    const winograd_transform winograd_results[9][9]
    ctypedef struct magnitudes:
        uint32_t most, least
    void winograd_note(magnitudes *m, const float *of, int64_t count)
    uint32_t winograd_largest(const float *of, int64_t count, uint32_t largest)
    void winograd_add_slices(float *of, int64_t slice, int64_t slices, int64_t columns)

ctypedef fused stored:  # storage types whose compute type is float
    f16
    bf16
    float

cdef enum:
    LINE_LANES = LINE_BYTES // 4  # channels of a cache line; whole lines are written even with narrower vectors

cdef struct Transform:  # a separable transform of tiles
    winograd_transform along[3]
    int64_t taken[3]  # values on each axis before the transform
    int64_t given[3]  # values on each axis after the transform
    int64_t step[3]  # distance of neighbouring tiles before the transform

cdef struct ValuePitches:  # strides of transformed tiles, in elements
    int64_t point, strip, tile  # a strip has ``tile`` channels


cdef inline void transform_box(
    const Transform *f, const Box *tiles, const float *window, const Window *m, int64_t channels, float *to,
    ValuePitches pitches, float *buffer,
) noexcept nogil:
    """Transform all tiles of a box to to[point][strip][tile][channel]; tiles in the order batch, depth, height, width.

    One cache line of channels and one row of tiles at a time. Neighbouring tiles of the row share the results of the
    transforms along depth and height.
    """
    cdef int64_t part, v, n, d, h, w, i, tile, vectors, lanes, columns = (tiles.count[3] - 1) * f.step[2] + f.taken[2]
    cdef int64_t pitch[3]
    cdef int axis
    cdef const float *of
    cdef float *second
    cdef float *line
    for part in range(count_blocks(channels, LINE_LANES)):
        v, tile = part * LINE_LANES, 0
        line = to + v // pitches.tile * pitches.strip + v % pitches.tile
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
                                       line + tile * pitches.tile + i * f.given[1] * f.given[2] * pitches.point,
                                       pitches.point, f.given[2] * pitches.point, f.given[1], vectors)
                        tile += 1


cdef inline void transform_one(
    const Transform *f, const float *of, const int64_t *of_pitch, float *to, const int64_t *to_pitch, int64_t vectors,
    float *buffer,
) noexcept nogil:
    """Transform one tile of ``vectors`` vectors, with any strides on the three axes."""
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
