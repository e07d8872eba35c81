"""Mistakes in Winograd's algorithm: tiles, filters, transforms, sums, and the range in which results are valid."""

from mutants.schemata import DROPPED, mutants_of

VALUES = "test_winograd.py::test_values["
PARTS = "test_winograd.py::test_values_of_phases"
SLICES = "test_winograd.py::test_slices"
RANGE = "test_winograd_range.py test_winograd_sums.py::test_overflow_of_one_output_is_seen"
BUNDLES = "test_bundles.py::test_winograd"

TILE_MUTANTS = [
    *mutants_of(
        "pyx/winograd/transform.h",
        f"{SLICES} {RANGE}",
        ("the last slice is not added", "i < slices", "i < slices - 1"),
        (
            "the last value of a result is not looked at",
            "i < count",
            "i < count - 1",
            "uint32_t largest)\n{\n    for (int64_t i = 0; i < count",
        ),
    ),
    *mutants_of(
        "pyx/winograd/range.pxd",
        RANGE,
        (
            "infinity stands",
            "result >= INFINITE_BITS",
            "result > INFINITE_BITS",
            "else:\n        return operand >= INFINITE_BITS or result >= INFINITE_BITS",
        ),
        ("results that float16 makes infinite stand", "result >= F16_INFINITE_BITS", "result >= INFINITE_BITS"),
        ("tiny values stand", "float_of(result) < least_result(float_of(most))", "False"),
        ("results that vanish stand", "greatest_of(other) == 0", "True"),
        ("tiny values next to large ones stand", "float_of(result) >= least_result(greatest_of(other))", "True"),
        ("tiny operands make tiny results stand", "<float>1", "<float>0", "max(<float>1, greatest)"),
        ("large operands count as ordinary ones", "greatest", "<float>1", "max(<float>1, greatest)"),
        ("of the workers the last one counts", "max(result, seen.result)", "seen.result"),
        ("negative values have no magnitude", "max(value, -value)", "value"),
        ("of an operand the first row is looked at", "rows *= tensor.shape[axis]", DROPPED),
        ("of a row the first value is looked at", "tensor.shape[5]", "1", "range(tensor.shape[5])"),
    ),
    *mutants_of(
        "pyx/winograd/transform.pxd",
        f"{VALUES} {PARTS}",
        ("tiles of a row lie one element apart", "w * f.step[2] * pitch[2]", "w * pitch[2]"),
        ("images of a box are the first", "n * m.batch_pitch", "0", "window + v + n * m.batch_pitch"),
        ("lines of channels are the first", "v // pitches.tile * pitches.strip + v % pitches.tile", "0"),
        ("points of the depth lie on each other", "i * f.given[1] * f.given[2] * pitches.point", "0"),
        ("a filter's depth is not transformed", "f.given[0] > 1 or f.taken[0] > 1", "False"),
        ("rows of a tile are the first", "h * f.step[1] * pitch[1]", "0"),
    ),
    *mutants_of(
        "pyx/winograd/filter.pxd",
        f"{VALUES} {PARTS}",
        (
            "taps are neighbours in a filter",
            "step.walk.axis[axis].filter_step * f.w.axis[axis] * row",
            "f.w.axis[axis] * row",
        ),
        (
            "taps that the filter lacks keep old values",
            "zero_block(lines + t * row, f.taps * row, 1, channels, row)",
            DROPPED,
        ),
        (
            "picked taps that the filter lacks keep old values",
            "memset(lines + t * f.width, 0, f.width * sizeof(float))",
            DROPPED,
        ),
        ("taps that lie apart pass for adjacent", "w.axis[axis] != taps", "False"),
        ("channels of the added steps lie on each other", "step * part.step_channels + c0", "c0"),
        (
            "channels that are loaded later lie on the first",
            "c0 * width",
            "0",
            "to + j * together * f.strip + c0 * width",
        ),
    ),
    *mutants_of(
        "pyx/winograd/box.pxd",
        f"{VALUES} {PARTS} {BUNDLES}",
        ("a row is stored beyond its end", "min(columns, walk.axis[2].positions - column)", "columns"),
        ("rows below the last one are stored", "walk.axis[1].positions - at[1]", "t.outputs[1]"),
        ("slices behind the last one are stored", "at[0] >= walk.axis[0].positions", "False"),
        ("siblings are images", "(tiles.begin[0] + n) // t.steps.siblings", "(tiles.begin[0] + n)"),
        ("each chunk of channels begins anew", "i == 0", "True", "FRESH if i == 0 else ADDED"),
        ("chunks have the first one's filter", "i // c.chunks * c.channels + c0", "0"),
        (
            "rows of tiles that lie apart are stored as one",
            "walk.axis[1].target_step * c.y.axis[1] == count * walk.axis[2].target_step * c.y.axis[2]",
            "True",
        ),
        (
            "a block of outputs has the first one's filter",
            "t.o // c.filters.width",
            "0",
            "(t.g * count_blocks(job.outputs, c.filters.width) + t.o // c.filters.width)",
        ),
        ("shared tiles of a group are the first group's", "(t.g * c.tiling.box_count + box_index)", "box_index"),
        (
            "chunks of a span have the first one's tiles",
            "(i - first) * c.values_size",
            "0",
            "(i - first) * c.values_size + p * c.value_point",
        ),
        ("groups have the first one's tiles", "g * channels", "0", "p * c.value_point + g * channels"),
    ),
    *mutants_of(
        "pyx/winograd/tiling.pxd",
        f"{VALUES} {PARTS} {SLICES}",
        ("the last box of tiles is a whole one", "min(whole, limit - box.begin[axis])", "whole"),
        ("the filter has a tap more", "tap[2] < step.held[2]", "tap[2] <= step.held[2]"),
        ("siblings have the positions of the first", "n % t.steps.siblings * t.steps.added", "0"),
        ("the target has a position more", "(a.positions - 1) * a.target_step", "a.positions * a.target_step"),
        (
            "the target begins at its first element",
            "a.target_begin",
            "0",
            "a.source_begin, a.source_step = a.target_begin, a.target_step",
        ),
        ("tiles begin one element apart", "tiles.begin[1 + axis] * f.step[axis]", "tiles.begin[1 + axis]"),
        (
            "a tile that is not full is left out",
            "step.walk.axis[axis].positions + t.outputs[axis] - 1",
            "step.walk.axis[axis].positions",
        ),
    ),
    *mutants_of(
        "pyx/winograd/wgrad_tasks.pxd",
        f"{VALUES} {SLICES} {BUNDLES} {PARTS}",
        ("a part begins with the first outputs", "index % c.output_blocks * c.blocks.outputs", "0"),
        ("a part begins with the first channels", "index // c.output_blocks % c.chunk_blocks * c.blocks.chunk", "0"),
        ("pieces of channels are the first", "index % of_group * FINISHED_CHANNELS", "0"),
        ("the last bundle has all its groups", "min(c.blocks.groups, c.groups - part.g)", "c.blocks.groups"),
    ),
    *mutants_of(
        "pyx/winograd/wgrad.pxd",
        f"{SLICES} {VALUES} {PARTS} {BUNDLES}",
        ("each box begins anew", "box == first_box", "True"),
        (
            "a slice lacks its first box",
            "boxes * slice // c.blocks.slices",
            "boxes * slice // c.blocks.slices + 1",
            "first_box = boxes * slice // c.blocks.slices",
        ),
        ("taps that the filter lacks are stored", "is_held(c.tiling.steps, t)", "True"),
        ("slices of a part are the first", "(task // c.pieces * c.blocks.slices * c.pieces + index)", "index"),
        (
            "shared gradients of a block are the first's",
            "part.o0 // c.blocks.outputs",
            "0",
            "(index * c.output_blocks + part.o0 // c.blocks.outputs)",
        ),
        ("lines of channels lie on each other", "i // LINE_LANES * c.source_line + i % LINE_LANES", "i"),
    ),
    *mutants_of(
        "pyx/winograd/wgrad.pxd",
        "test_winograd_sums.py",
        (
            "the last output is not looked at",
            "part.outputs",
            "part.outputs - 1",
            "block + i * c.target_row, part.outputs, largest",
        ),
    ),
    *mutants_of(
        "pyx/winograd/wgrad.pxd",
        RANGE,
        (
            "the last piece's magnitude is kept",
            "seen.result",
            "0",
            "max(seen.result, store_piece(c, &part, &piece, block,",
        ),
    ),
    *mutants_of(
        "pyx/winograd/wgrad.pxd",
        SLICES,
        ("strips of gradients are the first", "column // c.target_width * c.target_strip", "0"),
    ),
]
