"""Mistakes in how a call's work is put together: orders of memory, patches, Winograd's walks, what is remembered."""

from mutants.schemata import DROPPED, mutants_of

EXACT, FORMATS = "test_values.py::test_exact", "test_values.py::test_formats"
CALLS, PATCHES, BUNDLES = "test_calls.py", "test_patches.py", "test_bundles.py::test_winograd"
WINOGRAD = "test_winograd.py::test_values[ test_winograd.py::test_values_of_phases"

WORK_MUTANTS = [
    *mutants_of(
        "convgrad_cy/cpu/layouts.py",
        "test_orders.py",
        (
            "axes nest if they do in the target",
            "axes[-1][1:] == (size * source_stride, size * target_stride)",
            "axes[-1][2] == size * target_stride",
        ),
        ("a result is not brought back", "place == 2", "False"),
        ("an operand is not brought into order", "place < 2", "False"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/layout.py",
        "test_orders.py",
        ("an array's axes in the order of its shape", "np.argsort(axes)", "axes", "made.transpose(np.argsort(axes))"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/patches.py",
        f"{PATCHES}::test_pays {PATCHES}::test_exact {PATCHES}::test_layouts {PATCHES}::test_taps_as_channels",
        ("patches with padding", "problem.pad_begin[axis] == 0", "True"),
        ("patches with dilation", "problem.dilation[axis] == 1", "True"),
        ("patches that lie apart", "(problem.stride[axis] == kernel or positions == 1)", "True"),
        ("patches of an axis with a rest", "size == positions * kernel", "True"),
        ("a filter's elements in the other order", "1 if channels == (0,) else -1", "-1 if channels == (0,) else 1"),
        ("dgrad's patches are not brought back", "self.copier.copy(patches, x)", DROPPED),
        ("groups of patches", "problem.groups > 1", "False", 'problem.groups > 1:\n        return "there'),
    ),
    *mutants_of(
        "convgrad_cy/cpu/columns.py",
        "test_columns.py",
        ("columns of 16-bit types", "dtype.itemsize != dtype.compute_itemsize", "False"),
        ("a copied filter is not filled", "self.copier.copy(filter, arrays[filter_place])", DROPPED),
        ("elements of any order are (channel, tap)", "(True, np.moveaxis(filter, 2, -1))", "(False, filter)"),
        ("images do not count", "(2 * problem.batch - 1)", "1"),
    ),
    *mutants_of(
        "pyx/copy/columns.pxd",
        "test_columns.py::test_any_geometry test_columns.py::test_exact",
        (
            "the first tap within x is left out",
            "count_blocks(-begin, a.dilation)",
            "count_blocks(-begin, a.dilation) + 1",
        ),
        ("the last tap within x is left out", "count_blocks(a.x - begin, a.dilation)", "(a.x - begin) // a.dilation"),
        ("rows of taps are always adjacent", "step_w == of_last == last", "True"),
        ("columns are those of the first group", "group * c.channels * c.taps", "0"),
        ("columns are those of the first image", "image // c.groups * c.positions * step", "0"),
    ),
    *mutants_of(
        "pyx/copy/add.h",
        "test_columns.py::test_any_geometry test_columns.py::test_exact",
        ("the last piece of a row is left out", "memcpy(to + last, &end, sizeof(piece))", "memcpy(to + last, &end, 0)"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/exchanged.py",
        "test_exchanged.py::test_any_geometry test_exchanged.py::test_exact",
        ("strides stay strides", "problem.dilation", "problem.stride", "stride=problem.dilation"),
        ("the batch stays the batch", "x.swapaxes(0, 2)", "x"),
        ("a filter is not reversed", "filter.swapaxes(1, 2)[_REVERSED]", "filter.swapaxes(1, 2)"),
        (
            "a reversed filter is read from its end",
            "self.filter.on(arrays[self.reversed])[_REVERSED]",
            "self.filter.on(arrays[self.reversed])",
        ),
        ("groups may lie apart", "by_group == channels * by_channel", "True"),
        ("padding of a reversed filter", "(kernel - 1) * dilation - pad", "pad"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/walks.py",
        f"{WINOGRAD} test_algorithm.py",
        ("a tile has an output more", "n + 1 - axis.taps", "n + 2 - axis.taps"),
        ("the last piece of a filter holds all its taps", "np.minimum(self.taps, left)", "self.taps"),
        ("pieces have the first one's taps", "np.arange(pieces) * (PIECE_TAPS * self.phases)", "np.arange(pieces) * 0"),
        ("reversed taps begin with the first tap", "walk.filter_begin + last * walk.filter_step", "walk.filter_begin"),
        (
            "reversed taps see the source of the first",
            "walk.source_begin + last * walk.source_tap",
            "walk.source_begin",
        ),
        ("siblings have the source of the first", "first * whole.source_step", "first * 0"),
        (
            "siblings without the last positions",
            "-(-(whole.positions - first) // apart)",
            "(whole.positions - first) // apart",
        ),
        ("phases of taps have every tap", "whole.filter_step * phases", "whole.filter_step"),
        (
            "siblings of wgrad come before its parts",
            "sets + siblings if operation == WGRAD else siblings + sets",
            "siblings + sets",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/plan.py",
        f"{WINOGRAD} {BUNDLES} test_algorithm.py test_winograd.py::test_half_types",
        (
            "dgrad's tiles have the channels of fprop",
            "problem.channels(operation == DGRAD)",
            "problem.channels()",
            "problem.channels(operation == DGRAD)\n    lanes = tile",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/tilings.py",
        "test_contract.py",
        ("larger tiles than are accurate", "most <= x", "True"),
        (
            "more channels than are accurate",
            "most_added(operation, problem) * problem.channels(operation == DGRAD)[0] > MOST_ACCURATE_CHANNELS",
            "False",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/task.py",
        f"{EXACT} {FORMATS}",
        ("x and y keep their places in dgrad", "places[::-1]", "places"),
        ("the filter is not turned", "filter.swapaxes(1, 2)", "filter"),
    ),
    *mutants_of(
        "convgrad_cy/problem.py",
        "test_invariance.py::test_layouts test_patches.py::test_taps_as_channels test_plan.py::test_layouts_are_seen",
        ("rows that lie apart are one axis", "height == width * view.shape[5]", "True"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/__init__.py",
        "test_values.py::test_every_value",
        ("direct multiplies pairs", "here._replace(multiplies_pairs=False)", "here"),
        needs="pairs",
    ),
    *mutants_of(
        "convgrad_cy/calls.py",
        f"{CALLS} test_arguments.py test_bounded.py test_conv_backward.py",
        ("results beside inputs are not looked at", "(out is None or are_apart(out, first, second))", "True"),
        ("results of several parts are not looked at", "found.are_apart(arrays, outs)", "True"),
        ("what a call takes is not counted", "counted()", "0", "_KNOWN.keep(key, found, counted())"),
        ("the gradient of the input is checked first", "-1 if library is NUMPY else 1", "1"),
    ),
    *mutants_of(
        "convgrad_cy/prepared.py",
        f"{CALLS} test_arguments.py test_conv_backward.py",
        ("unaligned inputs are read as they are", "not (is_addressable(first) and is_addressable(second))", "False"),
        ("an empty result has a kernel", "0 in self.shape", "False"),
        ("an array for a result is not looked at beside the next one", "arrays.append(out)", DROPPED),
        ("only every other array is looked at", "arrays[i - 1]", "arrays[i]"),
        ("a part is written before the next one has memory", "partial(compute, i - 1) if i else None", "None"),
    ),
    *mutants_of(
        "pyx/repeat.pyx",
        f"{CALLS} test_keywords.py test_threads.py",
        ("calls of other functions are the same", "function", "None", "function, threads, asked, keywords, <object>"),
        (
            "calls with other numbers of threads are the same",
            "threads",
            "0",
            "function, threads, asked, keywords, <object>",
        ),
        (
            "calls that ask for other shapes are the same",
            "asked",
            "None",
            "function, threads, asked, keywords, <object>",
        ),
        ("calls with other keywords are the same", "keywords", "None", "function, threads, asked, keywords, <object>"),
        ("the dtype is not in the key", "<object>cnp.PyArray_DESCR(first)", "None"),
        ("calls with an unaligned array are like others", "<size_t>cnp.PyArray_DATA(array) % <size_t>itemsize", "0"),
        ("calls with a read-only array are like others", "not cnp.PyArray_ISWRITEABLE(array)", "0"),
        (
            "calls of other strides are the same",
            "cnp.PyArray_STRIDE(array, axis)",
            "0",
            "cnp.PyArray_DIM(array, axis), cnp.PyArray_STRIDE(array, axis)",
        ),
        (
            "calls of other shapes are the same",
            "cnp.PyArray_DIM(array, axis)",
            "0",
            "cnp.PyArray_DIM(array, axis), cnp.PyArray_STRIDE(array, axis)",
        ),
        ("the second array's layout is not in the key", "layout(second)", "None"),
        ("the first array's layout is not in the key", "layout(first)", "None"),
        ("the layout of out is not in the key", "layout(out)", "None", "layout(out))"),
        ("True is 1", "kind is int or kind is str", "kind is int or kind is bool or kind is str"),
        (
            "an array that begins in another is apart",
            "begin[0] < end[i] and begin[i] < end[0]",
            "begin[i] < begin[0] and begin[0] < end[i]",
        ),
        ("an array of negative strides begins at its first element", "begin[0] += span", DROPPED),
    ),
    *mutants_of(
        "convgrad_cy/cpu/layouts.py",
        f"{PATCHES}::test_layouts {PATCHES}::test_taps_as_channels",
        ("axes that lie apart are taken as one", "outer != size * inner", "False"),
    ),
    *mutants_of(
        "convgrad_cy/cpu/patches.py",
        f"{PATCHES}::test_taps_as_channels",
        (
            "taps that are not one in memory are channels",
            "Axes(moved.shape[pair], moved.strides[pair]).nested() is None",
            "False",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/patches.py",
        f"{PATCHES}::test_layouts",
        ("a copied filter is empty", "arrays[filter_place][...] = filter", DROPPED),
    ),
    *mutants_of(
        "convgrad_cy/cpu/winograd/plan.py",
        "test_algorithm.py::test_plans",
        (
            "groups of part of a block",
            "tuning.kept_filter_bytes // filters // block * block",
            "tuning.kept_filter_bytes // filters",
        ),
    ),
    *mutants_of(
        "convgrad_cy/cpu/views.py",
        "test_plan.py::test_layouts_are_seen",
        (
            "another axis says whether positions are adjacent",
            "abs(source.strides[5]) < abs(source.strides[channel])",
            "abs(source.strides[5]) < abs(source.strides[2])",
        ),
    ),
]
