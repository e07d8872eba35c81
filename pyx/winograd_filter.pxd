"""The filters of fprop and dgrad, transformed: all channels once for all tiles, or a chunk for the tiles of one task.

    filters[group][strip of outputs][point][added step, channel][output of the strip]
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from blocks cimport count_blocks
from copy cimport load_block, zero_block
from problem cimport conv_walk
from tensor cimport Tensor, count_taps, filter_offset
from ukernel cimport VECTOR_BYTES, strip_width, whole_vectors
from winograd cimport LINE_LANES, Transform, stored, tile_size, transform_one, winograd_largest
from winograd_tiling cimport TileStep, is_held

cdef enum:
    FILTER_CHANNELS = 16  # that are loaded together

cdef struct FilterBank:
    Transform transform
    const TileStep *step  # the one that the walk is from
    conv_walk walk
    Tensor w
    int64_t channels, taps, width  # of a strip in memory; outputs of a line
    int64_t point, strip  # elements from point to point, and of a strip
    int64_t direction  # 1 or -1 where taps are adjacent in memory, in order or in reverse; else 0


cdef inline void describe_filters(FilterBank *f, int64_t points, int64_t outputs) noexcept nogil:
    """All that follows from transform, walk, tensor and channels."""
    cdef float kind = 0
    f.width = min(strip_width(kind), whole_vectors(max(outputs, 1), kind))
    f.taps = count_taps(&f.walk)
    # A distance that is no power of two: the points of a channel otherwise share their place in the cache.
    f.point = f.channels * f.width + LINE_LANES
    f.strip = points * f.point


cdef inline void describe_taps(FilterBank *f, const TileStep *step) noexcept nogil:
    """The taps of one of the added steps."""
    cdef int64_t t, first
    f.step, f.walk = step, step.walk
    first = filter_offset(&f.w, &f.walk, 0)
    f.direction = 1 if f.taps == 1 else filter_offset(&f.w, &f.walk, 1) - first
    for t in range(f.taps):
        if f.direction * f.direction != 1 or filter_offset(&f.w, &f.walk, t) - first != t * f.direction:
            f.direction = 0
    if f.taps == 1 and f.w.channel != 1:
        f.direction = 0
    if not is_held(step, f.taps - 1):
        f.direction = 0


cdef inline int64_t loaded_strips(const FilterBank *f) noexcept nogil:
    """Strips of outputs that are loaded together: where outputs are adjacent in memory, two lines of the cache."""
    return max(<int64_t>1, 2 * LINE_LANES // f.width) if f.w.batch == 1 else 1


cdef inline int64_t filter_scratch(const FilterBank *f) noexcept nogil:
    """Elements that a task needs."""
    cdef int64_t width = f.width
    return (FILTER_CHANNELS * f.taps * loaded_strips(f) * width
            + tile_size(&f.transform, width * sizeof(float) // VECTOR_BYTES))


cdef inline uint32_t transform_part(
    const FilterBank *f, const stored *filter, float *to, int64_t channels, int64_t outputs, float *scratch
) noexcept nogil:
    """Channels of strips that are loaded together, whose first output and channel ``filter`` points at.

    The largest magnitude among them.
    """
    cdef int64_t width = f.width, strips = count_blocks(outputs, width), row = strips * width
    cdef int64_t i, j, c0, c, t, some, axis, lowest, size
    cdef int64_t pitch[3]
    cdef int64_t to_pitch[3]
    cdef const stored *of
    cdef const float *first
    cdef float *buffer = scratch + FILTER_CHANNELS * f.taps * row
    cdef uint32_t largest = 0
    pitch[2], to_pitch[2] = row, f.point
    for axis in range(1, -1, -1):
        pitch[axis] = pitch[axis + 1] * f.walk.axis[axis + 1].taps
        to_pitch[axis] = to_pitch[axis + 1] * f.transform.given[axis + 1]
    if f.direction < 0:
        for axis in range(3):
            pitch[axis] = -pitch[axis]
    if outputs < row:
        memset(scratch, 0, FILTER_CHANNELS * f.taps * row * sizeof(float))
    lowest = filter_offset(&f.w, &f.walk, f.taps - 1 if f.direction < 0 else 0)
    for i in range(count_blocks(channels, FILTER_CHANNELS)):
        c0 = i * FILTER_CHANNELS
        some = min(<int64_t>FILTER_CHANNELS, channels - c0)
        of = filter + c0 * f.w.channel
        if f.direction and f.w.channel == f.taps:
            load_block(scratch, row, 1, of + lowest, 1, f.w.batch, some * f.taps, outputs)
        elif f.direction:
            for c in range(some):
                load_block(scratch + c * f.taps * row, row, 1, of + lowest + c * f.w.channel, 1, f.w.batch,
                           f.taps, outputs)
        else:
            for t in range(f.taps):
                if is_held(f.step, t):
                    load_block(scratch + t * row, f.taps * row, 1, of + filter_offset(&f.w, &f.walk, t),
                               f.w.channel, f.w.batch, some, outputs)
                else:
                    zero_block(scratch + t * row, f.taps * row, 1, some, row)
        size = some * f.taps * row
        largest = winograd_largest(scratch, size, largest)
        for j in range(strips):
            for c in range(some):
                first = scratch + (c * f.taps + (f.taps - 1 if f.direction < 0 else 0)) * row + j * width
                transform_one(&f.transform, first, pitch, to + j * f.strip + (c0 + c) * width, to_pitch,
                              width * sizeof(float) // VECTOR_BYTES, buffer)
    return largest


cdef inline uint32_t transform_filters(
    const FilterBank *f, const stored *filter, float *to, int64_t channels, int64_t outputs, float *scratch
) noexcept nogil:
    """Channels of one strip or several, whose first output and channel ``filter`` points at; the largest magnitude.

    Of outputs that are adjacent in memory, all strips of some channels are read one after the other: they are in the
    same pages.
    """
    cdef int64_t some = FILTER_CHANNELS if f.w.batch == 1 else channels, c0 = 0, j
    cdef int64_t width = f.width, together = loaded_strips(f)
    cdef uint32_t largest = 0
    while c0 < channels:
        for j in range(count_blocks(outputs, together * width)):
            largest = max(largest, transform_part(
                f, filter + c0 * f.w.channel + j * together * width * f.w.batch,
                to + j * together * f.strip + c0 * width,
                min(some, channels - c0), min(together * width, outputs - j * together * width), scratch))
        c0 += some
    return largest
