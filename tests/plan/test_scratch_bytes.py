"""A plan takes no more bytes than the limit, for any geometry, function, type and layout.

``explain`` counts one exception: the sum of the definition packs the filter and fills it up to whole vectors. The
exchange packs another array than the filter and has no exception.
"""

import re
from itertools import product
from math import prod

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from operations import dtype_of
from problems import Problem, parse

import convgrad_cy as cg
from convgrad_cy import dtypes
from convgrad_cy.cpu import task_of
from convgrad_cy.cpu.machine.kernels import this_machine
from convgrad_cy.cpu.plan.scratch import left_by
from convgrad_cy.problem import FPROP, ConvProblem, conv_size

NAMES = {"conv": "xw", "conv_backward_data": "yw", "conv_backward_filter": "xy"}
LIMITS = (0, 1000, 30_000, 400_000, 3_000_000, 20_000_000, None)
FORMATS = (("NCX", "OIX"), ("NXC", "XIO"), ("NXC", "OIX"))
#: Layers of families with few drawn problems: patches, overlaps, slices, small groups, stride phases.
LAYERS = ("mb2ic64ih28oc64kh3ph1", "mb4ic3ih64oc96kh8sh8", "mb2ic1iw9000oc300kw400sw160", "mb16ic5ih40oc3kh3ph1",
          "mb2g64ic64ih40oc64kh3ph1", "mb2ic32ih20oc32kh4sh2ph1")  # fmt: skip
#: Bytes that a call may take without a limit.
OF_ARRAYS, OF_ANY = 4, 64 << 20


@pytest.fixture(autouse=True)
def as_before():
    before = cg.get_scratch_limit()
    yield
    cg.set_scratch_limit(before)


def axis(x, kernel, stride, dilation, begin, end):
    """Sizes of an axis. If the filter is too large, padding makes up for it."""
    end = max(end, (kernel - 1) * dilation + 1 - x - begin)
    y = conv_size(x, kernel, stride, dilation, (begin, end))
    return x, y, kernel, stride, dilation, (begin, end)


def small(most):
    """Numbers up to ``most``, most of them small."""
    return st.integers(1, 4) | st.integers(1, most)


def patches(count, kernel, more, padding):
    """An axis of taps without gaps. Without ``more`` taps than the stride and without padding, they are patches."""
    stride = max(kernel - more, 1)
    return axis((count - 1) * stride + kernel, kernel, stride, 1, padding, padding)


AXES = st.builds(axis, small(90), small(70), small(9), small(5), st.integers(0, 20), st.integers(0, 20))
AXES |= st.builds(patches, small(40) | st.just(1), small(60), st.just(0) | small(30), st.just(0) | small(5))


def problem_of(batch, groups, ins, outs, axes):
    x, y, kernel, stride, dilation, padding = zip(*axes, strict=True)
    return Problem("drawn", batch, groups, groups * ins, groups * outs, x, y, kernel, stride, dilation, padding)


PROBLEMS = st.builds(
    problem_of,
    batch=small(20) | st.integers(1, 3000),
    groups=st.just(1) | small(300),
    ins=small(40) | st.integers(1, 600),
    outs=small(40) | st.integers(1, 600),
    axes=st.lists(AXES, min_size=1, max_size=2),
)


def formatted(part, shape, data_format, filter_format):
    """A shape in NCX or OIX, in one of the formats."""
    if part == "w":
        return shape if filter_format == "OIX" else (*shape[2:], shape[1], shape[0])
    return shape if data_format == "NCX" else (shape[0], *shape[2:], shape[1])


def sizes_of(problem):
    """Elements of x, w and y."""
    return [prod(getattr(problem, f"{part}_shape")) for part in "xwy"]


def packed(problem, itemsize, family):
    """Most bytes of the filter that the sum of the definition packs. Small groups may begin another block."""
    lanes, strip = this_machine().vector_bytes // itemsize, this_machine().tile_column_bytes // itemsize
    ins, outs = problem.x_channels // problem.groups, problem.y_channels // problem.groups

    def filled(count):
        unit = min(strip, -(-count // lanes) * lanes)
        return -(-count // unit) * unit

    elements = problem.groups * prod(problem.kernel) * max(ins * filled(outs), outs * filled(ins))
    return elements * itemsize * (2 if family == "small_groups" else 1)


def case(text, name, dtype, limit, **more):
    """An example that must stay within its limit."""
    batch, groups, ins, outs, *axes = text
    asked = {"formats": ("NCX", "OIX"), "algorithm": "auto", "threads": 1} | more
    return example(
        problem=problem_of(batch, groups, ins, outs, [axis(*one) for one in axes]),
        name=name, dtype=dtype, limit=limit, **asked,
    )  # fmt: skip


@settings(max_examples=600)
@given(
    problem=PROBLEMS,
    name=st.sampled_from(list(NAMES)),
    dtype=st.sampled_from(("float32", "float16", "float64", "int32")),
    formats=st.sampled_from(FORMATS),
    limit=st.sampled_from(LIMITS),
    algorithm=st.sampled_from(("auto", "auto", "direct", "winograd")),
    threads=st.sampled_from((1, 2, 16, 64)),
)
@case((550, 1, 1000, 1, (2, 15, 1, 1, 16, 16), (14, 7, 1, 2, 12, 12)), "conv", "int32", 0)
@case((20000, 1, 1, 1, (85, 31, 2, 1, 2, 2)), "conv_backward_data", "float32", 1000)
@case((20000, 2, 1, 1, (58, 64, 2, 1, 7, 7)), "conv_backward_filter", "float32", 0)
def test_explained_bytes(problem, name, dtype, formats, limit, algorithm, threads):
    assume(max(sizes_of(problem)) < 2e8)
    check(problem, name, dtype, formats, limit, algorithm, threads)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", LAYERS)
def test_layers(name, text):
    problem = parse(f'{text}n"scratch"')
    for limit, formats, threads in product((0, 100_000, 1_000_000, None), FORMATS, (1, 64)):
        check(problem, name, "float32", formats, limit, "auto", threads)


def check(problem, name, dtype, formats, limit, algorithm, threads):
    """Check the bytes of a plan, or the refusal of a named algorithm."""
    kind = dtype_of(dtype)
    sizes = sizes_of(problem)
    shapes = {part: formatted(part, getattr(problem, f"{part}_shape"), *formats) for part in "xwy"}
    asked = {
        "conv": {},
        "conv_backward_data": {"x_shape": shapes["x"]},
        "conv_backward_filter": {"w_shape": shapes["w"]},
    }
    keywords = problem.keywords | dict(zip(("data_format", "filter_format"), formats, strict=True)) | asked[name]
    cg.set_scratch_limit(limit)
    with cg.num_threads(threads):
        try:
            plan = cg.explain(name, [shapes[part] for part in NAMES[name]], dtype, algorithm=algorithm, **keywords)
        except ValueError as error:
            assert algorithm == "winograd", str(error)
            most = re.search(r"(\d+) bytes of scratch, more than the limit of (\d+)", str(error))
            assert re.match("algorithm must be 'auto' or 'direct' for ", str(error))
            assert most is None or int(most[1]) > int(most[2]) == limit
            return
    if limit is None and algorithm == "winograd":  # no other limit applies to an algorithm by name
        return
    itemsize = max(kind.itemsize, 4)
    allowed = 0 if plan.family in ("winograd", "exchanged") else packed(problem, itemsize, plan.family)
    most = max(OF_ARRAYS * sum(sizes) * kind.itemsize, OF_ANY) if limit is None else limit
    assert plan.details.get("scratch bytes", 0) <= most + allowed, str(plan)


def test_a_part_of_a_task_has_what_is_left():
    ones = ConvProblem(1, 1, 1, 1, (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0))
    for limit, taken, left in ((1000, 300, 700), (1000, 2000, 0), (None, 1 << 20, 63 << 20)):
        cg.set_scratch_limit(limit)
        task = task_of(FPROP, ones, dtypes.TABLE[2], "auto", [])
        assert left_by(task, taken).scratch_bytes == left
