"""Mistakes in the operands of pyx/: places of elements, windows, copies, types, zones, packed filters, NaN."""

from mutants.schemata import DROPPED, mutants_of

EXACT = "test_values.py::test_exact"
FORMATS = "test_values.py::test_formats"
ROUNDED = "test_values.py::test_rows_of_any_length test_values.py::test_every_value"
ONE_VALUE = "test_nonfinite.py::test_one_value"
INFINITE = "test_nonfinite.py::test_every_weight_or_gradient_infinite"
PHASES, ZONES, PACKING = "test_phases.py::test_exact", "test_zones.py::test_exact", "test_packing.py::test_exact"
PAIRS = "test_pairs.py::test_formats test_pairs.py::test_exact"
FILLED = "test_pairs.py::test_what_fills_a_pair_adds_nothing"
CHUNKS = "test_values.py::test_exact[2d_depth1200 test_packing.py::test_exact"

OPERAND_MUTANTS = [
    *mutants_of(
        "convgrad_cy/include/convgrad/problem.h",
        EXACT,
        ("taps are neighbours, whatever the dilation", "tap * axis->source_tap", "tap"),
        ("positions are neighbours, whatever the stride", "position * axis->source_step", "position"),
        ("the target without its stride", "position * axis->target_step", "position"),
        ("the filter without its first tap", "tap * axis->filter_step + axis->filter_begin", "tap * axis->filter_step"),
        ("an element behind the source is read", "source < axis->source_size", "source <= axis->source_size"),
        ("the source's first element is padding", "source >= 0", "source > 0"),
    ),
    *mutants_of(
        "pyx/base/memory.pxd",
        EXACT,
        ("a last block that is not full is left out", "length + block - 1", "length"),
    ),
    *mutants_of(
        "pyx/base/tensor.pxd",
        EXACT,
        ("swapped strides of the filter", "w.axis[axis]", "w.axis[2 - axis]", "tap[axis]) * w.axis[axis]"),
        ("swapped strides of the target", "y.axis[1]", "y.axis[2]", "conv_target(&walk.axis[1], h) * y.axis[1]"),
        ("swapped taps", "axis", "2 - axis", "axis] = t %"),
    ),
    *mutants_of(
        "pyx/copy/window.pxd",
        EXACT,
        ("a window without its last column", "(a.taps - 1) * llabs(m.tap) + 1", "(a.taps - 1) * llabs(m.tap)"),
        ("where padding ends is rounded down", "limit - coordinate + step - 1", "limit - coordinate"),
        ("no zeros at the beginning of a row", "zero_block(to, pitch, m.channel_pitch, begin, words)", DROPPED),
        (
            "no zeros at the end of a row",
            "zero_block(to + end * pitch, pitch, m.channel_pitch, part.length - end, words)",
            DROPPED,
        ),
        ("rows outside of the source are read", "not conv_inside(b, height)", "False"),
        ("slices outside of the source are read", "not conv_inside(a, depth)", "False"),
        ("channels are neighbours in every window", "offset + c * m.channel_pitch", "offset + c"),
        ("the last box is a whole one", "min(whole, limit - box.begin[axis])", "whole"),
        ("every box sees the first one's source", "box.begin[1 + axis]", "0", "box.begin[1 + axis], 0) * x.axis[axis]"),
        ("positions of a window without their stride", "m.axis[axis].step * m.pitch[axis]", "m.pitch[axis]"),
        ("a tap's part begins at the part before", "tap * m.tap", "max(tap - 1, 0) * m.tap"),
        ("images of a window are one", "n * m.batch_pitch", "0"),
        (
            "a negative step of taps is left out",
            "(tap[axis] * m.axis[axis].tap + m.axis[axis].begin)",
            "(tap[axis] * m.axis[axis].tap)",
        ),
    ),
    *mutants_of(
        "pyx/copy/window.pxd",
        PAIRS,
        ("images of pairs in place lie twice as far apart", "x.batch // 2 if m.pairs else x.batch", "x.batch"),
        (
            "rows of pairs in place lie twice as far apart",
            "x.axis[axis] // 2 if m.pairs else x.axis[axis]",
            "x.axis[axis]",
        ),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/direct/walk.pxd",
        f"{EXACT} {ZONES}",
        ("rows that lie apart are stored as one", "c.walk.axis[1].target_step * c.y.axis[1] == length", "True"),
        ("rows of a box lie one position apart", "step[axis] * box.count[axis]", "step[axis]"),
        ("padding is read in place", "c.padded", "False", "c.taps == 0 or c.padded or"),
    ),
    *mutants_of(
        "pyx/copy/load_store.pxd",
        f"{FORMATS} {EXACT} test_values.py::test_layouts_of_operands test_values.py::test_out[",
        ("elements are loaded as neighbours", "of[i * of_step]", "of[i]", "to[i] = widen(of[i * of_step]"),
        ("elements are stored as neighbours", "j * tensor_step", "j", "to[j * tensor_step] = narrow"),
        (
            "padding keeps its last channel",
            "columns",
            "columns - 1",
            "memset(block + p * block_p, 0, columns * sizeof(compute))",
        ),
        (
            "padding of adjacent positions keeps its last one",
            "positions",
            "positions - 1",
            "range(positions):\n            for q in range(columns):\n                block[p",
        ),
        (
            "the last element of a row is not stored",
            "positions",
            "positions - 1",
            "range(positions):\n                    to[p * tensor_p] = narrow",
        ),
    ),
    *mutants_of(
        "pyx/copy/transpose.c",
        f"{FORMATS} {EXACT}",
        ("columns beyond whole squares are left out", "column_end < columns", "column_end < columns - 1"),
        ("rows beyond whole squares are left out", "row_end < rows", "row_end < rows - 1"),
        ("swapped lines of a square", "i + k", "i + (k ^ 1)", "transpose_row(t, i + k) + j) = lines[k]"),
    ),
    *mutants_of(
        "pyx/copy/rows.h",
        f"{EXACT} {PHASES}",
        (
            "the rest of a row is not copied",
            "memcpy(to + bytes - piece, of + bytes - piece, (size_t)piece);",
            DROPPED,
        ),
        ("neighbours instead of every second", "of[2 * i]", "of[i]"),
        (
            "swapped phases of a row",
            "to[2 * i] = even[i], to[2 * i + 1] = odd[i]",
            "to[2 * i] = odd[i], to[2 * i + 1] = even[i]",
        ),
        ("words are spread as neighbours", "i * step", "i", "to[i * step] = of[i];"),
    ),
    *mutants_of(
        "pyx/base/scalar.h",
        f"{ROUNDED} {ONE_VALUE}",
        ("float16's infinity is widened to a number", "magnitude >= 0x7c00", "magnitude > 0x7c00"),
        ("float16 is rounded half up", "(magnitude >> 13 & 1)", "1"),
        ("subnormal float16 is twice as large", "0x1p-24f", "0x1p-23f"),
        ("bfloat16 is rounded half up", "(bits >> 16 & 1)", "1"),
    ),
    *mutants_of(
        "pyx/base/bfloat.h",
        f"{ROUNDED} {ONE_VALUE}",
        ("rows of bfloat16 are rounded down", "0x7fff", "0u", "(bits + 0x7fff + (high & 1))"),
        ("every vector of a row is the first", "of + i", "of", "low_##length(of + i) << 16"),
        ("the last of every second is left out", "to[count - 1] = bf16_widen(of[2 * (count - 1)])", DROPPED),
    ),
    *mutants_of(
        "pyx/copy/window.pxd",
        f"{PAIRS} test_phases.py::test_exact",
        ("rows copied together begin in padding", "(w - part.source) * pitch", "w * pitch"),
        ("rows copied together lie on each other", "r * m.pitch[1]", "0", "places[i] = <int32_t>(r * m.pitch[1]"),
        (
            "rows are copied together into padding",
            "b.source_size - height",
            "of_h.length",
            "h, b.source_size - height)",
        ),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/copy/pairs.pxd",
        f"{PAIRS} {FILLED} test_pairs.py::test_arrays_between_words",
        ("an odd channel has no word", "columns % 2", "False", "positions if columns % 2 else 0"),
        ("an odd channel has no words of its own", "(channels + 1) // 2", "channels // 2"),
        ("an odd row's last pair has a neighbour", "staged[q * PIECE + count - 1] &= 0xffff", DROPPED),
        ("both halves are the second", "first[i] >> 16", "second[i] >> 16"),
        (
            "both halves are the first channel",
            "low + tensor_channel",
            "low",
            "bf16_pair_rows(word, low, low + tensor_channel, taps)",
        ),
        ("the last word is a pair", "2 * p + 1 == positions", "False"),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/direct/zones.pxd",
        ZONES,
        ("zones begin too early, and end so", "distance + a.source_step - 1", "distance"),
        ("a zone without its last tap", "t + 1 - r.tap", "t - r.tap"),
        ("taps without their last position", "end", "end - 1", "min(first_at(a, t, a.source_size), end)"),
        ("a zone's first row of taps is the filter's", "r[1].tap + h", "h"),
        (
            "a zone's rows of taps follow each other",
            "r[2].taps < walk.axis[2].taps",
            "False",
            "if r[2].taps < walk.axis[2].taps:\n        taps[0]",
        ),
        ("a zone's positions begin at the box's", "h * step[2]", "(h - z.axis[1].first) * step[2]"),
        ("a zone begins where the one before does", "begin += z.positions", DROPPED),
    ),
    *mutants_of(
        "pyx/direct/packing.pxd",
        f"{PACKING} {EXACT} {INFINITE} test_packing.py::test_infinity",
        (
            "each channel is packed from the first",
            "filter + i * conv.w.channel",
            "filter",
            "packed + i * width, line, filter + i * conv.w.channel",
        ),
        ("all groups have the filter of the first", "task // c.filter_chunks // c.filter_strips", "0"),
        ("taps of phases are packed on each other", "first + t * part.channels * width", "first + t * width"),
        ("chunks of the filter are packed on each other", "(c0 * c.filter_outputs + o0 * channels)", "(o0 * channels)"),
        ("a strip has the outputs of the one before", "task // c.filter_chunks % c.filter_strips * c.strip", "0"),
    ),
    *mutants_of(
        "pyx/direct/packing.pxd",
        f"{PAIRS}",
        ("the last channel of a pair is joined with the next tap's", "2 * i + 1 < channels", "True"),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/direct/exact.pxd",
        "test_pairs.py::test_padding",
        ("the low halves of pairs are finite", "0x7f807f80", "0x7f800000"),
        ("the high halves of pairs are finite", "not found & <uint32_t>0x80008000", "not found & <uint32_t>0x00008000"),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/direct/correlate_tasks.pxd",
        f"test_segments.py::test_exact {CHUNKS} {EXACT} {ZONES}",
        ("a cut walk has the taps of the whole", "(a.filter_begin - b.filter_begin) // b.filter_step", "0"),
        (
            "boxes of several rows pass for one",
            "conv.walk.axis[axis].target_step * conv.y.axis[axis] != spaced",
            "False",
        ),
        ("sums beyond the target's outputs are stored", "across != stored", "False"),
    ),
    *mutants_of(
        "pyx/base/tensor.pxd",
        PHASES,
        (
            "every second tap passes for adjacent",
            "walk.axis[axis].filter_step * w.axis[axis] != taps",
            "w.axis[axis] != taps",
        ),
    ),
    *mutants_of(
        "pyx/direct/walk.pxd",
        PAIRS,
        ("words of odd rows pass for pairs", "c.channels % 2 or c.blocks.chunk % 2 or steps % 2", "False"),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/direct/walk.pxd",
        f"{FORMATS} {PHASES} test_groups.py::test_strided",
        (
            "places without the target's stride",
            "conv.walk.axis[axis].target_step * conv.y.axis[axis]",
            "conv.y.axis[axis]",
        ),
    ),
    *mutants_of(
        "pyx/copy/rows.h",
        f"{FORMATS} {ZONES}",
        ("every strip is the first one", "i * of_row + s * bytes", "i * of_row"),
    ),
    *mutants_of(
        "pyx/direct/packing.pxd",
        f"{INFINITE} test_packing.py::test_infinity",
        ("infinity in a filter is not noted", "raise_flag(c.nonfinite)", DROPPED),
    ),
    *mutants_of(
        "pyx/direct/correlate_tasks.pxd",
        f"{FORMATS} {ZONES} test_patches.py::test_taps_as_channels",
        ("images pass for adjacent", "box.count[0] == 1 or conv.y.batch == spaced", "True"),
    ),
]
