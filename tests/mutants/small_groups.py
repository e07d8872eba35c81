"""Mistakes in small groups side by side: their lanes and copies, the sliding and the spreading tile."""

from mutants.schemata import DROPPED, mutants_of

EXACT, SLIDING = "test_values.py::test_exact", "test_sliding.py::test_exact"
SPREAD = "test_spread.py::test_exact"
LANES = f"{EXACT}[2d_depthwise {EXACT}[3d_groups {EXACT}[2d_groups {SLIDING}"

SMALL_GROUPS_MUTANTS = [
    *mutants_of(
        "pyx/small_groups/lanes.pxd",
        LANES,
        ("lanes have the channels of the first group", "lane // c.outputs * c.words + i", "i"),
        ("a box of lanes is stored beyond its end", "i + 1 < c.boxes[axis]", "False"),
    ),
    *mutants_of(
        "pyx/small_groups/lanes.pxd",
        LANES,
        (
            "the source of a box lacks its last row",
            "c.high[axis]",
            "c.high[axis] - 1",
            "(box.begin[axis] + c.extent[axis] - 1) * c.source_step[axis] + c.high[axis])",
        ),
        (
            "the source of a box begins too late",
            "box.begin[axis] * c.source_step[axis] + c.low[axis]",
            "box.begin[axis] * c.source_step[axis]",
        ),
        ("taps in reverse reach nothing before", "min(pad, <int64_t>0)", "0"),
        ("lanes side by side have channels of groups", "c.x.group if c.channels == 1 else c.x.channel", "c.x.channel"),
    ),
    *mutants_of(
        "pyx/small_groups/lanes.pxd",
        "test_groups.py::test_bands",
        ("bands after the first image are too few", "whole // rows * c.boxes[1]", "whole // rows * rows * c.bands"),
    ),
    *mutants_of(
        "pyx/small_groups/copies.pxd",
        LANES,
        ("a block of lanes begins with the first group", "box.lane // c.outputs * c.channels * c.x_lane", "0"),
    ),
    *mutants_of(
        "pyx/small_groups/copies.pxd",
        "test_groups.py::test_bands",
        ("rows that are kept stay where they are", "part + below * c.part.axis[1]", "part"),
        ("rows that are kept are read as well", "source += kept * c.x.axis[1]", DROPPED),
        ("rows are kept of boxes side by side", "box.source[2] != before.source[2]", "False"),
    ),
    *mutants_of(
        "pyx/small_groups/correlate.pxd",
        f"{SLIDING} {LANES}",
        ("lanes of a group have its first filter", "(l0 + lane) % c.outputs * c.w.batch", "0"),
        ("no zeros where no tap reaches, in place", "zero_target(c, &box, made)", DROPPED),
        ("no zeros where no tap reaches", "memset(result, 0, c.result_size * sizeof(compute))", DROPPED),
        ("a block of lanes has the first one's filter", "box.lane // c.block * line * walks[i].taps", "0"),
    ),
    *mutants_of(
        "pyx/small_groups/wgrad.pxd",
        LANES,
        ("slices of lanes after the first are one", "slice * size + i", "size + i"),
        (
            "a slice of lanes lacks its first box",
            "boxes * slice // slices",
            "boxes * slice // slices + 1",
            "range(first_band(c, boxes * slice // slices)",
        ),
        ("sums of lanes are not cleared", "memset(sums, 0, size * sizeof(compute))", DROPPED),
        ("channels of lanes have one filter", "to += c.w.channel", DROPPED),
    ),
    *mutants_of(
        "pyx/small_groups/pieces.pxd",
        f"{SLIDING} {LANES}",
        ("taps in reverse, positions not", "-target_step", "target_step", "s.y_position = -target_step"),
        (
            "rows of x lie as far apart as taps",
            "height.source_step * c.x.axis[1]",
            "height.source_tap * c.x.axis[1]",
            "s.x_height, s.x_position = height.source_step * c.x.axis[1]",
        ),
    ),
    *mutants_of(
        "pyx/small_groups/rows.pxd",
        f"{SLIDING} {LANES}",
        ("a row begins with the filter's first row", "run.table + row.first * run.taps", "run.table"),
        ("rows of other taps pass for alike", "first != row.first or taps != row.taps", "taps != row.taps"),
        (
            "slices of a depth are the first",
            "row.depth + t",
            "t",
            "packed + (row.depth + t) * area, made, made_step, t == 0)\n                    else",
        ),
        (
            "each slice of taps begins anew",
            "t == 0",
            "True",
            "area, made, made_step, t == 0)\n                    else",
        ),
        ("positions without taps keep their sums", "not row.depths", "False"),
    ),
    *mutants_of(
        "pyx/small_groups/rows.pxd",
        "test_groups.py::test_bands",
        ("rows are summed as bands have them", "end = min(end, (h // c.lanes.heights + 1) * c.lanes.heights)", DROPPED),
    ),
    *mutants_of(
        "pyx/small_groups/spread.pxd",
        SPREAD,
        ("spread taps lie like positions in any case", "width.source_tap == columns.source_tap", "True"),
        (
            "spread columns in reverse are those before",
            "-width.source_step",
            "width.source_step",
            "-width.source_step if",
        ),
        ("spread parts have the first one's padding", "columns.source_begin += part.taps * width.source_tap", DROPPED),
        ("spread rows begin with the filter's first", "row.first * s.w_row", "0", "packed + row.first * s.w_row"),
        ("spread runs begin with the filter's first tap", "run.first * s.w_tap", "0"),
    ),
    *mutants_of(
        "pyx/small_groups/correlate.pxd",
        SPREAD,
        ("a spread block has the first one's filter", "block * (c.block // c.outputs)", "0"),
    ),
    *mutants_of(
        "pyx/small_groups/correlate.pxd",
        "test_pairs.py::test_exact[2d_groups",
        ("a pair of weights is one twice", "2 * i + 1", "2 * i"),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/tile/spread_template.h",
        SPREAD,
        ("spread chunks have the first one's padding", "part->end - first", "part->end"),
        ("spread channels after four are the first", "i * SPREAD_LANES", "0", "const int64_t lane = i * SPREAD_LANES"),
    ),
    *mutants_of(
        "pyx/tile/spread_sums.h",
        SPREAD,
        ("spread sums are of the first taps", "count * s->x_tap", "0"),
    ),
    *mutants_of(
        "pyx/tile/slide.pxd",
        SLIDING,
        ("all parts have the padding of the first", "s.begin - t", "s.begin"),
        ("each part of a row begins anew", "fresh and r == t == 0", "fresh"),
        (
            "wgrad repeats the taps of the first part",
            "t * s.w_tap",
            "0",
            "slide_f32_sums(&part, x + t * s.x_tap, y, w + t * s.w_tap)",
        ),
    ),
    *mutants_of(
        "pyx/tile/slide_template.h",
        SLIDING,
        ("padding moves too slowly", "count * step", "count", "begin -= count * step"),
        ("the last column is padding", "s->end", "s->end - 1", "begin = s->begin, end = s->end"),
        ("chunks of a row are the first", "count * step * s->x_tap", "0"),
        ("blocks of wgrad's rows are the first", "count * s->w_row", "0"),
        ("wgrad's chunks of positions are the first", "positions * s->x_position", "0"),
    ),
    *mutants_of(
        "pyx/small_groups/runs.pxd",
        SLIDING,
        ("taps in reverse begin one further", "a.source_size - 1 - source", "a.source_size - source"),
        ("a run has the taps of all", "next_first != first or next_count != count", "next_count != count"),
        ("tables of runs begin at the first", "walk.axis[1].taps * count", "0", "table += walk.axis[1].taps * count"),
    ),
    *mutants_of(
        "pyx/small_groups/rows.pxd",
        f"{EXACT}[1d_depthwise80_long",
        ("a piece begins where its run does", "max(run.begin, box.begin[2])", "run.begin"),
    ),
]
