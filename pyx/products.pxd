"""The products of a task of fprop or dgrad, and the sums that are NaN formed again."""

from libc.stdint cimport int32_t, int64_t

from convolution cimport Convolution
from correlation cimport Correlation, holds_vectors
from exact cimport filter_sum
from packing cimport pack_chunk
from pairs cimport words_of
from scalar cimport compute, scalar
from ukernel cimport PAIRS, SCALARS, multiply_strip, strip_width, whole_vectors
from window cimport Box

cdef struct Part:  # of the depth: a chunk of channels under all taps
    int64_t begin, channels


cdef inline int64_t run_of(const Correlation *c, const Part *part) noexcept nogil:
    """Steps of the depth that both operands have evenly spaced: a tap's channels, or those of a row of taps."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t words = words_of(part.channels, conv.blocks.pairs)
    if (conv.window.channel_pitch != 1 or conv.window.axis[2].tap * conv.window.pitch[2] != words
            or c.strips_in_place or c.packing != c):
        return words
    return words * conv.walk.axis[2].taps


cdef inline const compute *find_strip(
    const Correlation *c, const scalar *filter, const compute *packed, compute *bank, const Part *part, int64_t outputs,
    const int32_t **lines,
) noexcept nogil:
    """A strip of a chunk's filter, and where its lines are: packed before, as it is in the filter, or packed now."""
    cdef const Convolution *conv = &c.conv
    lines[0] = c.filter_depth if part.channels == conv.blocks.chunk else c.last_filter_depth
    if not conv.blocks.packs:
        return packed
    if c.strips_in_place and holds_vectors(c, outputs, conv.channels - part.begin - part.channels, bank[0]):
        lines[0] = c.filter_place if part.channels == conv.blocks.chunk else c.last_filter_place
        return <const compute *>filter
    pack_chunk(c, filter, bank, outputs, part.channels)
    return bank


cdef inline void add_products(
    const Correlation *c, const Box *box, int64_t positions, int64_t outputs, const Part *part, const compute *window,
    const scalar *filter, const compute *packed, compute *bank, const int32_t *position, const int32_t *column,
    compute *sums, const int64_t *places, int64_t sums_row,
) noexcept nogil:
    """sums += the products of a chunk of channels, or = those of the first one.

    ``filter`` and ``packed`` are the chunk's from the block's first output channel on. A position's sums are at its
    place, or, without ``places``, so many times ``sums_row`` further on.
    """
    cdef const Convolution *conv = &c.conv
    cdef int64_t words = conv.taps * words_of(part.channels, conv.blocks.pairs), run = run_of(c, part)
    cdef int64_t depth = conv.taps * part.channels, j = 0, r, w, width = strip_width(sums[0]), row = box.count[3]
    cdef int64_t sums_h = whole_vectors(row, sums[0]), columns
    cdef const int32_t *lines
    cdef const int32_t *filter_depth = c.filter_depth if part.channels == conv.blocks.chunk else c.last_filter_depth
    cdef const compute *strip
    if not conv.blocks.positions_across:
        while j < outputs:
            columns = min(width, outputs - j)
            strip = find_strip(c, filter + j * conv.w.batch, packed + j * c.packing.conv.taps * part.channels, bank,
                               part, columns, &lines)
            multiply_strip(PAIRS if conv.blocks.pairs else SCALARS, positions, columns, words, run, window, position,
                           column, strip, lines, sums + j, places, sums_row, part.begin == 0)
            j += width
        return
    lines = c.filter_rows if part.channels == conv.blocks.chunk else c.last_filter_rows
    for r in range(positions // row):
        w = 0
        while w < row:
            multiply_strip(SCALARS, outputs, min(width, row - w), depth, part.channels, packed, lines, filter_depth,
                           window + position[r * row + w], column, sums + r * sums_h + w, NULL, sums_row,
                           part.begin == 0)
            w += width


cdef inline void repair(
    const Correlation *c, const Box *box, int64_t o0, int64_t outputs, const scalar *source, const scalar *filter,
    compute *sums, int64_t sums_w, int64_t sums_h, int64_t sums_o,
) noexcept nogil:
    """Form the sums again that are NaN."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t n, d, h, w, o, row = 0
    cdef int64_t position[4]
    cdef compute *sum
    if compute is not int:
        for n in range(box.count[0]):
            for d in range(box.count[1]):
                for h in range(box.count[2]):
                    for w in range(box.count[3]):
                        position[0], position[1] = box.begin[0] + n, box.begin[1] + d
                        position[2], position[3] = box.begin[2] + h, box.begin[3] + w
                        for o in range(outputs):
                            sum = sums + row * sums_h + w * sums_w + o * sums_o
                            if sum[0] != sum[0]:
                                sum[0] = filter_sum(&conv.walk, source, &conv.x, position,
                                                    filter + (o0 + o) * conv.w.batch, &conv.w, conv.channels, sum[0])
                    row += 1
