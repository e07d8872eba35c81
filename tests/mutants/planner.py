"""Mistakes in decisions before a kernel runs: sizes, walks, boxes, orders of memory, and remembered calls."""

from mutants.schemata import DROPPED, mutants_of

EXACT, PLAN, BOXES = "test_values.py::test_exact", "test_plan.py", "test_boxes.py"
PROBLEM, SEGMENTS, PHASES, BUNDLES = "test_problem.py", "test_segments.py", "test_phases.py", "test_bundles.py"

PLANNER_MUTANTS = [
    *mutants_of(
        "convgrad_cy/problem.py",
        f"{PROBLEM} {EXACT}",
        ("a kernel's extent without its last tap", "(kernel - 1) * dilation + 1", "(kernel - 1) * dilation"),
        (
            "a position beyond the last",
            "(x + sum(padding) - dilated_size(kernel, dilation)) // stride",
            "-(-(x + sum(padding) - dilated_size(kernel, dilation)) // stride)",
        ),
        ("a transposed size by the number of positions", "(x - 1) * stride", "x * stride"),
        (
            "the odd element of padding at the beginning",
            "(large, small) if lower else (small, large)",
            "(large, small)",
        ),
        (
            "same padding of the positions rounded down",
            "-(-x // stride)",
            "x // stride",
            "aligned_padding(x, -(-x // stride), kernel",
        ),
        ("padding at the other end", "-pad_begin", "pad_begin", "source_begin=-pad_begin"),
        ("phases of the stride, whatever it shares with the dilation", "stride // common", "stride"),
        ("a phase begins at its tap", "(first * dilation - pad_begin) % stride", "first % stride"),
        ("a phase's positions rounded down", "-(-(x - begin) // stride)", "(x - begin) // stride"),
        ("a phase's taps rounded down", "-(-(kernel - first) // filter_step)", "(kernel - first) // filter_step"),
        ("a phase sees y without the padding", "(begin + pad_begin - first * dilation)", "(begin - first * dilation)"),
        ("a phase's taps in the order of the filter", "-(dilation // common)", "dilation // common"),
        ("elements without a tap are not visited", "visited == self.x", "True"),
        (
            "three-dimensional where two axes are",
            "(fill,) * (3 - len(values)) + values",
            "values + (fill,) * (3 - len(values))",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/boxes.py",
        f"{BOXES} {EXACT} {PLAN}",
        ("a window's axis without the last element", "greatest - least + 1", "greatest - least"),
        ("reversed taps begin with the first", "axis.source_begin - least", "0"),
        (
            "a part for each tap, of one position less",
            "taps * positions",
            "taps * positions - 1",
            "taps * positions, True",
        ),
        ("neighbours need not be neighbours", "(contiguous and axis.source_step > 1)", "False"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/boxes.py",
        f"{PHASES} {BUNDLES}",
        ("a shared window of the longest phase alone", "max(greatest) - min(least) + 1", "positions"),
        ("phases begin a shared window together", "axis.source_begin - begin", "0"),
        (
            "groups of positions that lie side by side are bundled",
            "placement.positions_adjacent",
            "False",
            "if placement.positions_adjacent:\n        if",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/padding.py",
        SEGMENTS,
        (
            "a tap's last position is left out",
            "-((first - axis.source_size) // axis.source_step)",
            "-((first + 1 - axis.source_size) // axis.source_step)",
        ),
    ),
    *mutants_of(
        "convgrad_cy/problem.py",
        f"{SEGMENTS} {PROBLEM}",
        (
            "a part sees the source under the first tap",
            "begin * self.source_step + tap * self.source_tap",
            "begin * self.source_step",
        ),
        ("parts of a walk have its first target", "self.target_begin + begin * self.target_step", "self.target_begin"),
        ("parts of a walk have its first tap", "self.filter_begin + tap * self.filter_step", "self.filter_begin"),
    ),
    *mutants_of(
        "convgrad_cy/problem.py",
        f"{PROBLEM} {BOXES} {EXACT}",
        ("reversed taps reach nothing before the first", "reach < 0", "False"),
        ("elements behind the source are inside", "greatest >= self.source_size", "False"),
        ("a block that is no multiple of strips", "-(-size // multiple) * multiple", "size"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/choices.py",
        f"{PHASES} {EXACT} {PLAN}",
        (
            "phases that lack one are joined",
            "1 < sums.all_walks.extents[2] == sums.walks[0][2].target_step",
            "1 < sums.all_walks.extents[2]",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/plan/sum_problem.py",
        f"{PHASES} {EXACT} {PLAN}",
        ("dgrad has the channels of fprop", "problem.channels(backward)", "problem.channels()"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/machine/__init__.py",
        f"{PHASES} {EXACT} {PLAN}",
        ("pairs of every type are multiplied", 'dtype.name == "bfloat16"', "True"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/mirrored.py",
        f"{PLAN}::test_mirrored {EXACT}",
        ("a strided problem is mirrored", "problem.stride != (1, 1, 1)", "False"),
        ("groups are mirrored", "problem.groups > 1", "False"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/boxes.py",
        "test_pairs.py::test_formats test_pairs.py::test_exact",
        ("the last pair of a row has no room", "positions + positions % 2", "positions"),
        needs="pairs",
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/boxes.py",
        "test_plan.py::test_blocks",
        ("a box as large as its window may not be", "elements * chunk * itemsize <= tuning.window_bytes", "True"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/reads.py",
        "test_reads.py",
        ("few outputs have a window", "blocks.outputs >= sums.tuning.window_outputs", "True"),
        ("boxes of few positions have a window", "blocks.images * positions > tuning.few_positions", "True"),
        ("strides need no window", "shared or width.source_step > 1", "shared"),
        ("pairs are read from the filter", "blocks.packs and not blocks.pairs", "blocks.packs"),
        ("few channels are transposed", "wide or sums.channels < sums.tuning.transposed_channels", "wide"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/plan/steps.py",
        "test_segments.py::test_exact test_phases.py::test_exact",
        ("walks use the filter of the first", "first", "0", "== PACKS, 0, first"),
        (
            "a filter is packed with a part's taps alone",
            "_row(walk, own[0][1], reads, PACKS)",
            "_row(*own[0], reads, PACKS)",
        ),
        ("parts use the filter of the first part", "_row(*each, reads, 0)", "_row(*each, reads, 1)"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/plan/walks.py",
        "test_walks.py",
        ("walks begin where the last of their shape class does", "made[:, _COLUMNS] += shifts", DROPPED),
        ("each walk is of its own shape class", "i not in _BEGINS", "True"),
        ("the walk that comes first is one of the others", "numbers[before:] += before", DROPPED),
        ("the last axis decides the shape class", "numbers[before:] * len(axis.shapes)", "0"),
        ("rows after a walk's first are like it", "np.arange(len(first)) - first", "0"),
    ),
    *mutants_of(
        "convgrad_cy/memo/bounded.py",
        "test_bounded.py test_calls.py::test_not_without_end",
        ("remembered entries are never forgotten", "self.bytes > self.most", "False"),
        ("an entry that is too large drives all others out", "size > self.most", "False", "if size > self.most"),
        ("the newest goes first", "self._sizes.popitem(last=False)", "self._sizes.popitem()"),
        (
            "an entry that replaces another counts twice",
            "self._sizes.pop(key, 0)",
            "self._sizes.pop(key, 0) * 0",
            "self._drop(key, self._sizes.pop(key, 0))\n            if size > self.most",
        ),
        ("a plan of an old setting is kept", "generation != self.generation", "False"),
        ("a remembered plan is not counted", "count(result.steps.nbytes)", DROPPED),
        ("counted bytes are counted again", "_counts.bytes = 0", DROPPED),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/order.py",
        "test_order.py::test_the_first_stage_asks_for_nothing_else",
        (
            "slices depend on the threads",
            "-(-tuning.wanted_tasks // (blocks * pieces))",
            "-(-8 * sums.tile.threads // blocks)",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/order.py",
        "test_scratch_limit.py::test_slices_are_fewer",
        ("slices ignore the limit on memory", "sums.most_scratch", "(1 << 60)"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/long_filters.py",
        "test_long_filters.py",
        ("the last block of taps is as long as the others", "min(size, axis.taps - tap)", "size"),
        ("blocks have all rows of taps", "left = max(1, left // axes[-1][0].taps)", DROPPED),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/costs.py",
        "test_choices.py::test_choices_of_small_problems",
        ("all problems are small", "problem.multiplications < SMALL_PRODUCTS", "True"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/work.py",
        "test_choices.py::test_padding_is_left_out",
        ("all padding is left out", "1 - LEFT_OUT * (1 - left)", "left"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/plan.py",
        "test_choices.py::test_one_task_is_cut_for_two_threads test_algorithm.py::test_filters_of_a_task",
        ("one task is not cut", "min(machine.tuning.tuned_threads, tasks)", "machine.tuning.tuned_threads"),
        ("one strip's filters are one task's", "channels * strips // wanted", "channels"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/rewrites/columns.py",
        "test_columns.py::test_no_part_copies_a_filter_larger_than_columns",
        ("columns are whole, however many", "prod(problem.y) <= problem.y_channels", "True"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/rewrites/folded_taps.py",
        "test_patches.py::test_one_image_is_dense",
        ("one image is cut as several are", "images == 1", "images == 0"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/__init__.py",
        "test_scratch_limit.py::test_families_decline",
        ("tiles ignore the limit on memory", 'words and Reason("it takes {}", words)', "None"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/plan.py",
        "test_order.py::test_plans_keep_the_order",
        (
            "blocks have chunks of their own",
            "chunk",
            "max(1, chunk // 2)",
            "chunk, outputs=block, slices=1",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/small_groups/limits.py",
        "test_order.py::test_layouts_have_the_same_bits test_order.py::test_plans_keep_the_order",
        (
            "each layout goes its own way",
            "channels_last_reason if differ and not order_of(sums).is_plain(sums) else reason",
            "reason",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/small_groups/boxes.py",
        "test_groups.py::test_lines_are_copied",
        (
            "copies of lines leave threads without tasks",
            "max(sums.tuning.wanted_tasks, threads)",
            "1",
            "if tasks >= max(sums.tuning.wanted_tasks, threads)",
        ),
        (
            "channels first, lines are copied, too",
            "not positions_adjacent",
            "True",
            "alone and not positions_adjacent",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/plan.py",
        "test_bundles.py::test_exact",
        (
            "groups of several chunks are bundled",
            "chunk == sums.channels",
            "True",
            "if chunk == sums.channels and block",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/plan.py",
        "test_nontemporal.py::test_are_planned",
        (
            "sums of several chunks are stored past the cache",
            "chunk == sums.channels",
            "True",
            "whole = chunk == sums.channels and sums.tile",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/direct/plan.py",
        "test_phases.py::test_exact",
        ("windows of phases are their own", "phases > 1", "False", "shared=phases > 1)[:2]"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/small_groups/boxes.py",
        f"{EXACT}[2d_depthwise40_multiplier3",
        ("a block of lanes ends within a group", "width // outputs * outputs", "width"),
    ),
]
