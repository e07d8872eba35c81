"""Transforms of the filters of fprop and dgrad: once for all tiles, or a chunk of channels for the tiles of one task.

    filters[group][strip of outputs][point][added step, channel][output of the strip]
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from base.memory cimport count_blocks
from base.tensor cimport Tensor, count_taps, filter_offset
from copy.load_store cimport fetch_run, load_block, zero_block
from tile.ukernel cimport VECTOR_BYTES, strip_width, whole_vectors
from winograd.tiling cimport TileStep, is_held
from winograd.transform cimport LINE_LANES, Transform, magnitudes, stored, tile_size, transform_one, winograd_note

cdef enum:  # constants that depend on the filter's layout in memory, which a plan does not know
    MOST_CHANNELS = 16  # channels of a cache line, which are loaded together
    MOST_LINES = 432  # limit of channels x taps that are loaded together: MOST_CHANNELS of 3 x 3 x 3 taps
    CHANNELS_AHEAD = 4  # distance of prefetches: if a channel is a run of outputs, the next one is in another page

cdef struct FilterBank:
    Transform transform
    Tensor w
    int64_t channels, taps, width  # channels of a strip; taps of a step; outputs of a line
    int64_t point, strip  # elements between points, and elements of a strip
    int64_t volume  # taps of the whole filter if the taps of a channel are adjacent, otherwise 0

cdef struct FilterPart:  # channels and outputs that are transformed together, of all steps whose sums are added
    const TileStep *steps
    int64_t added
    int64_t step_channels  # channel offset between consecutive steps
    int64_t channels, outputs


cdef inline int64_t find_volume(const Tensor *w, const Py_ssize_t *kernel) noexcept nogil:
    cdef int64_t taps = 1
    cdef int axis
    for axis in range(2, -1, -1):
        if kernel[axis] > 1 and w.axis[axis] != taps:
            return 0
        taps *= kernel[axis]
    return taps


cdef inline void describe_filters(
    FilterBank *f, const TileStep *step, const Py_ssize_t *kernel, int64_t points, int64_t outputs
) noexcept nogil:
    """Set all values that follow from transform, tensor and channels. ``kernel`` is the filter's spatial shape."""
    cdef float kind = 0
    f.width = min(strip_width(kind), whole_vectors(max(outputs, 1), kind))
    f.taps = count_taps(&step.walk)
    f.volume = find_volume(&f.w, kernel)
    # One extra line keeps the distance from being a power of two, so that points do not fall into the same cache sets.
    f.point = f.channels * f.width + LINE_LANES
    f.strip = points * f.point


cdef inline int64_t loaded_strips(const FilterBank *f) noexcept nogil:
    """Strips that are loaded together: two cache lines if outputs are adjacent in memory, otherwise one strip."""
    return max(<int64_t>1, 2 * LINE_LANES // f.width) if f.w.batch == 1 else 1


cdef inline int64_t loaded_channels(const FilterBank *f) noexcept nogil:
    """Channels that are loaded together: at most one cache line, or two if channels are adjacent in memory."""
    cdef int64_t lines = 2 if f.w.channel == 1 else 1
    return max(<int64_t>1, lines * min(<int64_t>MOST_CHANNELS, MOST_LINES // max(f.volume, f.taps)))


cdef inline int64_t lines_size(const FilterBank *f) noexcept nogil:
    """Elements of the filters that are loaded together."""
    return loaded_channels(f) * max(f.volume, f.taps) * loaded_strips(f) * f.width


cdef inline int64_t filter_scratch(const FilterBank *f) noexcept nogil:
    """Elements of scratch memory that a task needs."""
    return (lines_size(f) + f.taps * f.width + tile_size(&f.transform, f.width * sizeof(float) // VECTOR_BYTES))


cdef inline void load_volume(
    const FilterBank *f, float *lines, int64_t row, const stored *filter, int64_t channels, int64_t outputs
) noexcept nogil:
    """Load lines[channel][tap of the whole filter][output]."""
    cdef int64_t c
    if f.w.channel == f.volume:
        load_block(lines, row, 1, filter, 1, f.w.batch, channels * f.volume, outputs)
        return
    for c in range(channels):
        if f.w.batch == f.volume:
            fetch_run(filter + (c + CHANNELS_AHEAD) * f.w.channel, outputs * f.volume * sizeof(stored))
        load_block(lines + c * f.volume * row, row, 1, filter + c * f.w.channel, 1, f.w.batch, f.volume, outputs)


cdef inline void load_taps(
    const FilterBank *f, const TileStep *step, float *lines, int64_t row, const stored *filter, int64_t channels,
    int64_t outputs,
) noexcept nogil:
    """Load lines[channel][tap of the step][output], with zeros for taps that the filter does not have."""
    cdef int64_t t
    for t in range(f.taps):
        if is_held(step, t):
            load_block(lines + t * row, f.taps * row, 1, filter + filter_offset(&f.w, &step.walk, t), f.w.channel,
                       f.w.batch, channels, outputs)
        else:
            zero_block(lines + t * row, f.taps * row, 1, channels, row)


cdef inline bint holds_all(const TileStep *step) noexcept nogil:
    """Whether the filter has all taps of the step."""
    return is_held(step, count_taps(&step.walk) - 1)


cdef inline void pick_taps(
    const FilterBank *f, const TileStep *step, float *lines, const float *volume, int64_t row
) noexcept nogil:
    """Copy lines[tap of the step] of one channel and one strip from the lines of the whole filter."""
    cdef int64_t t
    for t in range(f.taps):
        if is_held(step, t):
            memcpy(lines + t * f.width, volume + filter_offset(&f.w, &step.walk, t) * row, f.width * sizeof(float))
        else:
            memset(lines + t * f.width, 0, f.width * sizeof(float))


cdef inline void transform_step(
    const FilterBank *f, const TileStep *step, const float *lines, int64_t row, float *to, int64_t channels,
    int64_t strips, float *scratch,
) noexcept nogil:
    """Transform the taps of one of the added steps, for all loaded channels and strips."""
    cdef int64_t j, c, axis, first = 0, channel = f.taps * row, near = row, vectors
    cdef int64_t pitch[3]
    cdef int64_t to_pitch[3]
    cdef bint in_place = f.volume and holds_all(step)
    cdef float *picked = scratch
    cdef const float *of
    vectors = f.width * sizeof(float) // VECTOR_BYTES
    if f.volume:
        channel, near = f.volume * row, f.width
    pitch[2], to_pitch[2] = near, f.point
    for axis in range(1, -1, -1):
        pitch[axis] = pitch[axis + 1] * step.walk.axis[axis + 1].taps
        to_pitch[axis] = to_pitch[axis + 1] * f.transform.given[axis + 1]
    if in_place:
        first = filter_offset(&f.w, &step.walk, 0) * row
        for axis in range(3):
            pitch[axis] = step.walk.axis[axis].filter_step * f.w.axis[axis] * row
    for j in range(strips):
        for c in range(channels):
            of = lines + c * channel + j * f.width + first
            if f.volume and not in_place:
                pick_taps(f, step, picked, of, row)
                of = picked
            transform_one(&f.transform, of, pitch, to + j * f.strip + c * f.width, to_pitch, vectors,
                          scratch + f.taps * f.width)


cdef inline void transform_part(
    const FilterBank *f, FilterPart part, const stored *filter, float *to, float *scratch, magnitudes *seen
) noexcept nogil:
    """Transform strips that are loaded together. ``filter`` points at their first output and channel."""
    cdef int64_t strips = count_blocks(part.outputs, f.width), row = strips * f.width, together = loaded_channels(f)
    cdef int64_t c0 = 0, some, step, loaded = f.volume if f.volume else f.taps
    cdef float *lines = scratch
    cdef float *rest = scratch + lines_size(f)
    if part.outputs < row:
        memset(lines, 0, lines_size(f) * sizeof(float))
    while c0 < part.channels:
        some = min(together, part.channels - c0)
        for step in range(part.added):
            if step == 0 and f.volume:
                load_volume(f, lines, row, filter + c0 * f.w.channel, some, part.outputs)
            elif f.volume == 0:
                load_taps(f, part.steps + step, lines, row, filter + c0 * f.w.channel, some, part.outputs)
            if step == 0 or f.volume == 0:
                winograd_note(seen, lines, some * loaded * row)
            transform_step(f, part.steps + step, lines, row, to + (step * part.step_channels + c0) * f.width, some,
                           strips, rest)
        c0 += some


cdef inline void transform_filters(
    const FilterBank *f, FilterPart whole, const stored *filter, float *to, float *scratch, magnitudes *seen
) noexcept nogil:
    """Transform any number of strips. ``filter`` points at their first output and channel.

    If outputs are adjacent in memory, all strips of a few channels are read one after the other, because they are in
    the same pages.
    """
    cdef int64_t some = MOST_CHANNELS if f.w.batch == 1 else whole.channels, c0 = 0, j
    cdef int64_t width = f.width, together = loaded_strips(f)
    cdef FilterPart part = whole
    while c0 < whole.channels:
        part.channels = min(some, whole.channels - c0)
        for j in range(count_blocks(whole.outputs, together * width)):
            part.outputs = min(together * width, whole.outputs - j * together * width)
            transform_part(f, part, filter + c0 * f.w.channel + j * together * width * f.w.batch,
                           to + j * together * f.strip + c0 * width, scratch, seen)
        c0 += some
