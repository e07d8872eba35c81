"""Mistakes in the repair of sums that are NaN because of padding, and in the search for such sums."""

from mutants.schemata import DROPPED, mutants_of

EXACT = "test_values.py::test_exact"
ONE_VALUE, MANY_VALUES = "test_nonfinite.py::test_one_value", "test_nonfinite.py::test_many_values"
INFINITE = "test_nonfinite.py::test_every_weight_or_gradient_infinite"
NONFINITE = f"{ONE_VALUE} {INFINITE} {MANY_VALUES}"

NONFINITE_MUTANTS = [
    *mutants_of(
        "pyx/direct/exact.pxd",
        f"{NONFINITE} {EXACT}",
        ("the last column is not looked at", "columns", "columns - 1", "range(columns):\n            found |= sums"),
        ("the last value is not looked at", "count", "count - 1", "range(count):\n        found |= values"),
    ),
    *mutants_of(
        "pyx/direct/exact.pxd",
        EXACT,
        ("padding at the end is not known", "p * (walk.axis[axis].positions - 1)", "0"),
        ("padding under the last tap is not known", "t * (walk.axis[axis].taps - 1)", "0"),
    ),
    *mutants_of(
        "pyx/direct/repair.pxd",
        NONFINITE,
        (
            "a position whose last tap is outside stays",
            "a.taps - 1",
            "0",
            "conv_source(a, position[1 + axis], a.taps - 1)",
        ),
        (
            "rows without padding are those to form again",
            "sees_padding(&conv.walk, position)",
            "not sees_padding(&conv.walk, position)",
        ),
        ("terms of a sum have swapped axes", "source * x.axis[axis]", "source * x.axis[2 - axis]"),
        (
            "padding is a term of a sum",
            "not conv_inside(&walk.axis[axis], source)",
            "False",
            "if not conv_inside(&walk.axis[axis], source):\n            return False",
        ),
        ("no tap lies in padding", "missing |= <uint64_t>1 << (t % WORD)", DROPPED),
        ("infinity in a filter is not known", "value - value != 0", "value != value"),
        ("infinity in a filter is NaN", "value != value", "value - value != 0", "if value != value:"),
        ("NaN under a tap in padding counts as a term", "words.of[o].nan & existing", "words.of[o].nan"),
        (
            "the last output of a word is not looked at",
            "<int64_t>WORD",
            "<int64_t>WORD - 1",
            "min(<int64_t>WORD, outputs - o)",
        ),
        (
            "outputs of a word have the filter of the first",
            "filter + o * conv.w.batch",
            "filter",
            "sums + o * sums_o, filter + o * conv.w.batch",
        ),
        (
            "words of outputs have the filters of the first",
            "filter + o * conv.w.batch",
            "filter",
            "filter + o * conv.w.batch, sums + row",
        ),
        (
            "NaN of a channel that is not the first is not seen",
            "c * x.channel",
            "0",
            "kind) != widen(source[offset + c * x.channel]",
        ),
    ),
    *mutants_of(
        "pyx/direct/repair_filter.pxd",
        NONFINITE,
        ("a tap's last position does not count", "end - begin", "end - begin - 1", "by.count[axis] = end - begin"),
        ("padding of the last axis alone counts", "some or end - begin < a.positions", "end - begin < a.positions"),
        (
            "terms of wgrad without the source's stride",
            "a.source_step",
            "1",
            "by.step[axis] = a.source_step, a.target_step",
        ),
        ("skipped elements are met", "distance % grid.step[axis]", "0"),
        (
            "elements behind a tap's last one are met",
            "distance // grid.step[axis] >= grid.count[axis]",
            "distance // grid.step[axis] > grid.count[axis]",
        ),
        ("elements before a tap's first one are met", "distance < 0", "False"),
        ("every tap meets the first NaN", "has(grid, first.at)", "True"),
        (
            "the first NaN of the first channel stands for all",
            "&of.first[c]",
            "&of.first[0]",
            "conv.batch, &of.first[c], sum[0]",
        ),
        (
            "a NaN of the target is one of every output",
            "&by.first[o]",
            "&by.first[0]",
            "conv.batch, &by.first[o], sum[0]",
        ),
        ("images of the target are the first", "n * y.batch", "0", "by_row = (target + n * y.batch"),
        ("channels after those remembered are the first", "c0 * conv.x.channel", "0", "source + c0 * conv.x.channel"),
        ("outputs after those remembered are the first", "o0 * conv.y.channel", "0", "target + o0 * conv.y.channel"),
    ),
]
