"""Mistakes in the direct algorithm: its loops, the register tiles, stride phases, memory shared by threads."""

from mutants.schemata import DROPPED, mutants_of

EXACT = "test_values.py::test_exact"
PHASES = "test_phases.py::test_exact"
ZEROS = "test_values.py::test_zeros_come_before_sums"
INFINITE = "test_nonfinite.py::test_every_weight_or_gradient_infinite"
MANY_VALUES = "test_nonfinite.py::test_many_values"
CHUNKS = "test_values.py::test_exact[2d_depth1200 test_packing.py::test_exact"
PAIRS = "test_pairs.py::test_formats test_pairs.py::test_exact"

DIRECT_MUTANTS = [
    *mutants_of(
        "pyx/direct/wgrad_tasks.pxd",
        EXACT,
        (
            "strips of a panel are the first",
            "target + j * conv.y.channel",
            "target",
            "load_block(strip, c.strip, 1, target + j * conv.y.channel",
        ),
        (
            "a chunk begins with the first channel",
            "block // conv.output_blocks % c.chunk_blocks * conv.blocks.chunk",
            "0",
        ),
        ("a panel's next rows begin too early", "together * lines * c.strip", "lines * c.strip"),
    ),
    *mutants_of(
        "pyx/direct/wgrad_tasks.pxd",
        PAIRS,
        ("positions of pairs are neighbours", "step[3] *= 2", DROPPED),
        ("the last position has no pair", "(row + row % 2)", "row"),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/direct/wgrad.pxd",
        f"{EXACT} test_zones.py::test_exact",
        ("slices after the first are one", "slice * c.sums_size + i", "c.sums_size + i"),
        ("a zone has the first channel's rows", "column[row + k * part.channel_rows]", "column[row]"),
    ),
    *mutants_of(
        "pyx/direct/wgrad.pxd",
        f"{INFINITE} {MANY_VALUES}",
        (
            "infinity meets padding in wgrad",
            "conv.padded and any_nan(sums + t * pitch, rows, part.outputs, c.row)",
            "False",
        ),
    ),
    *mutants_of(
        "pyx/direct/correlate.pxd",
        f"{INFINITE} {EXACT}",
        ("infinity meets padding in fprop", "any_nan(sums + g * t.group_sums, rows, columns, t.sums.pitch)", "False"),
        ("rows of sums lie one row apart", "together", "1", "row += together"),
    ),
    *mutants_of(
        "pyx/direct/correlate.pxd",
        ZEROS,
        ("zeros come among the sums", "c[1].first_task", "0", "zeros = c[1].first_task"),
    ),
    *mutants_of(
        "pyx/direct/products.pxd",
        f"{CHUNKS} {PHASES} {EXACT} test_zones.py::test_exact",
        (
            "the last chunk's rows are as long as others",
            "t.c.last_filter_rows",
            "t.c.filter_rows",
            "else t.c.last_filter_rows",
        ),
        ("a run of taps begins with the first", "first_tap(zone, &conv.walk, i) * t.words", "0"),
        ("the sums of all strips are the first's", "sums + j", "sums", "strip, columns, sums + j"),
    ),
    *mutants_of(
        "pyx/direct/products.pxd",
        "test_bundles.py::test_exact",
        ("groups of pairs are twice as far apart", "g * t.words", "g * t.channels"),
        needs="pairs",
    ),
    *mutants_of(
        "pyx/direct/phases.pxd",
        PHASES,
        ("the last position of an odd row is left out", "count[0] > count[1]", "False"),
        (
            "a shared window without its last neighbours",
            "m.axis[axis].extent - m.axis[axis].positions + 1",
            "m.axis[axis].extent - m.axis[axis].positions",
        ),
        ("phases have the boxes of the first", "max(boxes, steps[i].conv.boxes[axis])", "steps[0].conv.boxes[axis]"),
        (
            "all phases of a row begin where it does",
            "c.conv.walk.axis[2].target_begin * c.row",
            "0",
            "begin = c.conv.walk.axis[2].target_begin * c.row",
        ),
        ("rows that a phase lacks are stored", "d < box.count[1] and h < box.count[2]", "True"),
        ("phases are spread as neighbours", "w * step", "w", "row[w * step] = sums[w]"),
        (
            "rows of phases have swapped axes",
            "(n * box.count[1] + d) * box.count[2] + h",
            "(n * box.count[1] + d) + h * box.count[2]",
        ),
    ),
    *mutants_of(
        "pyx/direct/phases.pxd",
        "test_phases.py::test_infinity",
        (
            "phases are formed again as if they began a row",
            "shared + c.conv.walk.axis[2].target_begin * c.row",
            "shared",
        ),
    ),
    *mutants_of(
        "pyx/tile/ukernel_template.h",
        f"{CHUNKS} {EXACT}",
        ("the last product is left out", "k < depth", "k < depth - 1", "k < depth; k++)\n            STEP"),
        ("each chunk begins anew", "sum_mode != CARRIED", "1", "sum[r][v] = sum_mode != CARRIED"),
    ),
    *mutants_of(
        "pyx/tile/ukernel_template.h",
        "test_zones.py::test_exact",
        ("rows of a tall tile begin with the first run", "a_depth[k]", "a_depth[0]", "a + a_depth[k] + 4 * q"),
        ("each chunk of a tall tile begins anew", "sum_mode != CARRIED", "1", "sum[r] = sum_mode != CARRIED"),
        needs="lines",
    ),
    *mutants_of(
        "pyx/tile/multiply.pxd",
        f"{EXACT} test_zones.py::test_exact",
        ("every tile reads the first rows", "rows.row += r", DROPPED),
        ("every tile has the first sums", "sums.first += r * sums.pitch", DROPPED),
        ("every tile has the first places of a table", "sums.place += r", DROPPED),
        ("rows that do not lie evenly pass for such", "row[i] - row[i - 1] != row[1] - row[0]", "False"),
    ),
    *mutants_of(
        "pyx/tile/ukernel.pxd",
        f"{EXACT} test_zones.py::test_exact",
        (
            "a strip without its last vector",
            "columns + vector_length(kind) - 1",
            "columns",
            "(columns + vector_length(kind) - 1) // vector_length(kind) * vector_length(kind)",
        ),
    ),
    *mutants_of(
        "pyx/copy/stream.pxd",
        "test_nontemporal.py::test_targets_between_lines",
        ("targets between lines are stored past the cache", "<int64_t>first % 64 == 0", "True"),
    ),
    *mutants_of(
        "pyx/copy/rearrange.pxd",
        "test_orders.py::test_copy",
        ("pieces of a row all go to its beginning", "task // parts % pieces * c.columns", "0"),
        ("the last rows are a whole task", "min(c.rows, c.shape[5] - row)", "c.rows"),
        (
            "swapped steps of two axes",
            "i * target_row + j * target_step",
            "j * target_row + i * target_step",
            "target[i * target_row + j * target_step] = source[i * source_row + j * source_step]\n\n",
        ),
    ),
    *mutants_of(
        "pyx/parallel/tasks.h",
        f"{EXACT} test_teams.py::test_same_bits",
        (
            "the last task is left out",
            "(end - first) * (i + 1) / workers",
            "(end - first) * (i + 1) / workers - (i + 1 == workers)",
        ),
        ("each thread begins with the first task", "(end - first) * i / workers", "0"),
        (
            "the last task of a range is taken and left",
            "task < range->end",
            "task < range->end - 1",
            "if (task < range->end)",
        ),
    ),
    *mutants_of(
        "pyx/parallel/tasks.pxd",
        f"{EXACT} test_teams.py::test_same_bits",
        ("all workers share the first one's scratch memory", "t.scratch + worker * t.scratch_size", "t.scratch"),
    ),
    *mutants_of(
        "pyx/parallel/float_state.h",
        "test_float_state.py",
        ("a thread keeps the caller's rounding", "set_float_state(STANDARD_STATE);", DROPPED),
        ("a thread does not give the caller's state back", "set_float_state(before);", DROPPED),
    ),
    *mutants_of(
        "pyx/tile/ukernel_template.h",
        "test_winograd.py::test_values[",
        ("sums are not added to those before", "sum[r][v] += *to;", DROPPED),
    ),
    *mutants_of(
        "pyx/direct/products.pxd",
        f"{PHASES} {EXACT}",
        ("images of a box have the sums of the first", "(n * box.count[1] + d)", "d"),
    ),
]
