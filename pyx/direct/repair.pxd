"""fprop and dgrad: recomputes sums with padding that came out as NaN, from the terms that exist.

Padding makes a sum NaN if a tap in padding has a nonfinite filter value. The sum is NaN by the definition if the
position reads NaN from the source, or if a tap inside the source has NaN in the filter. So each filter gets two words
with a bit per tap: taps with nonfinite values, and taps with NaN.
"""

from libc.stdint cimport int64_t, uint64_t

from base.problem cimport conv_axis, conv_inside, conv_source, conv_walk
from base.scalar cimport compute, real, scalar, widen
from base.tensor cimport Tensor, count_taps, filter_offset, find_tap
from copy.window cimport Box
from direct.walk cimport Convolution

cdef enum:
    WORD = 64  # bits of a word

cdef struct TapWords:  # of one output's filter; bit t % WORD stands for tap t
    uint64_t nonfinite, nan

cdef struct KnownWords:  # of WORD outputs; bit o of ``known`` says whether of[o] is set
    uint64_t known
    TapWords of[64]

cdef struct SumSteps:  # strides of the sums: between positions of a row, rows, outputs
    int64_t w, h, o


cdef inline bint sees_padding(const conv_walk *walk, const int64_t *position) noexcept nogil:
    """Whether some tap of a position (batch, depth, height, width) lies outside the source."""
    cdef int axis
    cdef const conv_axis *a
    for axis in range(3):
        a = &walk.axis[axis]
        if not conv_inside(a, conv_source(a, position[1 + axis], 0)):
            return True
        if not conv_inside(a, conv_source(a, position[1 + axis], a.taps - 1)):
            return True
    return False


cdef inline bint find_source(
    const conv_walk *walk, const Tensor *x, const int64_t *position, const int64_t *tap, int64_t *offset
) noexcept nogil:
    """Whether a tap of a position (batch, depth, height, width) lies in the source. Sets the element's offset."""
    cdef int axis
    cdef int64_t source
    offset[0] = position[0] * x.batch
    for axis in range(3):
        source = conv_source(&walk.axis[axis], position[1 + axis], tap[axis])
        if not conv_inside(&walk.axis[axis], source):
            return False
        offset[0] += source * x.axis[axis]
    return True


cdef inline uint64_t missing_taps(const conv_walk *walk, const Tensor *x, const int64_t *position) noexcept nogil:
    """A word with the bits of the taps that lie in padding."""
    cdef int64_t t, offset
    cdef int64_t tap[3]
    cdef uint64_t missing = 0
    for t in range(count_taps(walk)):
        find_tap(walk, t, tap)
        if not find_source(walk, x, position, tap, &offset):
            missing |= <uint64_t>1 << (t % WORD)
    return missing


cdef inline void find_words(
    TapWords *words, const conv_walk *walk, const scalar *filter, const Tensor *w, int64_t channels, real kind
) noexcept nogil:
    cdef int64_t t, c
    cdef uint64_t bit
    cdef const scalar *of
    cdef real value
    words.nonfinite = words.nan = 0
    for t in range(count_taps(walk)):
        of, bit = filter + filter_offset(w, walk, t), <uint64_t>1 << (t % WORD)
        for c in range(channels):
            value = widen(of[c * w.channel], kind)
            if value - value != 0:
                words.nonfinite |= bit
            if value != value:
                words.nan |= bit
                break


cdef inline bint position_has_nan(
    const conv_walk *walk, const scalar *source, const Tensor *x, const int64_t *position, int64_t channels, real kind
) noexcept nogil:
    """Whether a position reads NaN from the source, so that its sums are NaN for all outputs."""
    cdef int64_t t, c, offset
    cdef int64_t tap[3]
    for t in range(count_taps(walk)):
        find_tap(walk, t, tap)
        if find_source(walk, x, position, tap, &offset):
            for c in range(channels):
                if widen(source[offset + c * x.channel], kind) != widen(source[offset + c * x.channel], kind):
                    return True
    return False


cdef inline real filter_sum(
    const Convolution *conv, const int64_t *position, const scalar *source, const scalar *filter, real kind
) noexcept nogil:
    """target(position, o), in the order of the kernel: chunk by chunk, and within a chunk tap by tap.

    ``source`` points at the group, ``filter`` at output channel o.
    """
    cdef const Tensor *x = &conv.x
    cdef const Tensor *w = &conv.w
    cdef int64_t begin = 0, t, c, offset, tap_offset
    cdef int64_t tap[3]
    cdef real total = 0
    while begin < conv.channels:
        for t in range(conv.taps):
            find_tap(&conv.walk, t, tap)
            if not find_source(&conv.walk, x, position, tap, &offset):
                continue
            tap_offset = filter_offset(w, &conv.walk, t)
            for c in range(begin, min(begin + conv.blocks.chunk, conv.channels)):
                total += widen(source[offset + c * x.channel], kind) * widen(filter[tap_offset + c * w.channel], kind)
                if total != total:
                    return total
        begin += conv.blocks.chunk
    return total


cdef inline void repair_position(
    const Convolution *conv, const int64_t *position, int64_t outputs, const scalar *source, const scalar *filter,
    real *sums, int64_t sums_o, KnownWords *words,
) noexcept nogil:
    """Recompute sums of one position, for at most WORD outputs."""
    cdef uint64_t missing = missing_taps(&conv.walk, &conv.x, position), bit
    cdef uint64_t existing = 0 if conv.taps > WORD else ~missing  # a bit that stands for several taps is no evidence
    cdef int64_t o
    cdef bint asked = False
    cdef real *sum
    cdef const scalar *of
    for o in range(outputs):
        sum, of, bit = sums + o * sums_o, filter + o * conv.w.batch, <uint64_t>1 << o
        if sum[0] == sum[0]:
            continue
        if not words.known & bit:
            find_words(&words.of[o], &conv.walk, of, &conv.w, conv.channels, sum[0])
            words.known |= bit
        if not words.of[o].nonfinite & missing or words.of[o].nan & existing:
            continue
        if not asked and position_has_nan(&conv.walk, source, &conv.x, position, conv.channels, sum[0]):
            return
        asked = True
        sum[0] = filter_sum(conv, position, source, of, sum[0])


cdef inline void repair(
    const Convolution *conv, const Box *box, int64_t outputs, const scalar *source, const scalar *filter, compute *sums,
    SumSteps step,
) noexcept nogil:
    """Recompute the sums of a box that are NaN but should not be. ``filter`` points at the first of the outputs."""
    cdef int64_t n, d, h, w, o = 0, row
    cdef int64_t position[4]
    cdef KnownWords words
    if compute is not int:
        while o < outputs:
            words.known = row = 0
            for n in range(box.count[0]):
                for d in range(box.count[1]):
                    for h in range(box.count[2]):
                        for w in range(box.count[3]):
                            position[0], position[1] = box.begin[0] + n, box.begin[1] + d
                            position[2], position[3] = box.begin[2] + h, box.begin[3] + w
                            if sees_padding(&conv.walk, position):
                                repair_position(
                                    conv, position, min(<int64_t>WORD, outputs - o), source,
                                    filter + o * conv.w.batch, sums + row * step.h + w * step.w + o * step.o, step.o,
                                    &words)
                        row += 1
            o += WORD
