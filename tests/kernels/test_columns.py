"""Data gradients of a small y under a large filter, computed as columns."""

import numpy as np
import pytest
from checks import check_contract, check_formats, check_layouts, check_no_memory, check_not_finite, geometries
from hypothesis import given, settings
from hypothesis import strategies as st
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    OPERATIONS,
    assert_exact,
    integer_tensors,
    real_tensors,
)
from problems import parse

import convgrad_cy as cg
from convgrad_cy import calls, cpu
from convgrad_cy.cpu.plan.pipeline import Sequence
from convgrad_cy.cpu.rewrites import columns
from convgrad_cy.problem import ConvProblem

#: Problems of one to three axes, several images, groups, strides, dilation, padding, and x with elements without a tap.
PROBLEMS = [
    parse(text)
    for text in (
        'mb1ic64ih9oc64oh2kh8n"two_axes"',
        'mb1ic33iw53oc65ow4kw50n"one_axis"',
        'mb1ic17id6ih7iw8oc35od2oh2ow2kd5kh6kw7n"three_axes"',
        'mb2ic40ih12iw10oc48oh3ow2kh10kw9n"images"',
        'mb1g3ic54ih11oc72oh3kh9n"groups"',
        'mb1ic24ih26oc40oh3kh20sh3n"strided"',
        'mb1ic20ih17oc50oh3kh8dh1n"dilated"',
        'mb1ic64ih11oc64oh4kh12ph2n"padded"',
    )
]
GRADIENT = OPERATIONS["conv_backward_data"]
GRADIENTS = {name: OPERATIONS[name] for name in ("conv_backward_data", "conv_transpose")}

problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)
gradients = pytest.mark.parametrize("operation", GRADIENTS.values(), ids=list(GRADIENTS))


@pytest.fixture(params=(None, 20_000), ids=("whole", "parts"))
def forced(request, machine_with, monkeypatch):
    """Force columns for all data gradients, also with a few bytes of columns at a time, and collect the plans."""
    counted, plan = [], columns.pipeline
    if request.param:
        machine_with(own_tuning=cpu.this_machine().tuning._replace(column_bytes=request.param))

    def counting(*arguments):
        counted.append(plan(*arguments))
        return counted[-1]

    monkeypatch.setattr(columns, "refusal", lambda task: None if task.operation == "dgrad" else "not here")
    monkeypatch.setattr(columns, "pipeline", counting)
    calls.forget()
    yield counted
    calls.forget()


def explained(problem, name="conv_backward_data", **keywords):
    return cg.explain(name, [problem.y_shape, problem.w_shape], x_shape=problem.x_shape, **problem.keywords, **keywords)


@pytest.mark.tuning
@problems
def test_taken(problem):
    found = explained(problem)
    assert found.family == "columns" and found.details["copied"] == "x, which is added from columns"
    assert found.details["scratch bytes"] >= 4 * np.prod(problem.y_shape[2:]) * np.prod(problem.w_shape[1:])


@problems
@gradients
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_exact(problem, operation, data_format, filter_format, forced):
    for dtype in DTYPES:
        tensors, _ = integer_tensors(problem, dtype)
        result = operation.call(problem, tensors, data_format, filter_format)
        assert_exact(result, operation.expected(problem, tensors, data_format, filter_format), dtype)
    assert len(forced) == len(DTYPES)
    for each in forced:  # some channels of a filter (tap, channel) are not adjacent
        parts = [step.target.view.shape[2] for step in each.steps if isinstance(step, columns.Addition)]
        some = any(1 < channels < problem.w_shape[1] for channels in parts)
        assert ("and the filter" in str(each.notes["copied"])) == (filter_format == "XIO" and some)


@problems
def test_within_the_contract(problem, forced):
    terms = problem.y_shape[1] // problem.groups * np.prod(problem.y_shape[2:])
    check_contract(GRADIENT, problem, terms)


@problems
def test_layouts(problem, forced):
    check_layouts(GRADIENT, problem)
    check_formats(GRADIENT, problem)


@pytest.mark.parametrize(
    ("images", "channels", "most", "part"),
    (
        (2, 33, 20_000, (1, 17)),
        (5, 3, 20_000, (5, 3)),
        (5, 9, 20_000, (2, 9)),
        (5, 9, 20_000 // 9, (1, 2)),
        (5, 9, 9, (1, 1)),
    ),
)
def test_parts(images, channels, most, part):
    """A part must be as many images as there is room for, or channels of one image in nearly equal parts.

    A channel has 800 bytes here.
    """
    one, axes = (1, 1, 1), {"x": (1, 1, 53), "y": (1, 1, 4), "kernel": (1, 1, 50)}
    problem = ConvProblem(images, 1, channels, 8, **axes, stride=one, dilation=one, pad_begin=(0, 0, 0))
    assert columns.part_of(problem, 4, cpu.this_machine().tuning._replace(column_bytes=most)) == part


@pytest.mark.tuning
@pytest.mark.parametrize(("y", "outputs", "parts"), ((2, 16, 1), (5, 16, 8)))
def test_no_part_copies_a_filter_larger_than_columns(y, outputs, parts):
    """No part may copy a filter that is larger than its columns.

    In the format XIO, the channels of a part do not follow each other. In OIX they do, and parts copy nothing.
    """
    x, found = y + 47, []
    for data_format, filter_format in (("NCHW", "OIHW"), ("NHWC", "HWIO")):
        last = data_format == "NHWC"
        shapes = [(1, y, y, outputs), (48, 48, 128, outputs)] if last else [(1, outputs, y, y), (outputs, 128, 48, 48)]
        keywords = {"x_shape": (1, x, x, 128) if last else (1, 128, x, x), "data_format": data_format}
        found.append(cg.explain("conv_backward_data", shapes, filter_format=filter_format, **keywords))
    first, last = found
    assert first.family == last.family == "columns" and first.details["parts"] > 1
    assert last.details["parts"] == parts and ("filter" in last.details["copied"]) == (parts > 1)


def test_a_filter_with_gaps_is_copied(forced):
    """A filter whose elements of a column do not follow each other at one distance must be copied."""
    problem = PROBLEMS[0]
    x, w, y = integer_tensors(problem, "float32")[0]
    wide = np.zeros((*w.shape[:2], w.shape[2] + 2, 2 * w.shape[3]), np.float32)
    wide[:, :, 1:-1, ::2] = w
    found = cg.conv_backward_data(y, wide[:, :, 1:-1, ::2], x.shape, algorithm="direct")
    assert_exact(found, GRADIENT.expected(problem, (x, w, y)), "float32")
    assert "and the filter" in str(forced[0].notes["copied"])


@problems
def test_what_is_not_finite_reaches_what_its_taps_do(problem, forced):
    check_not_finite(GRADIENT, problem)


@settings(max_examples=150)
@given(geometries(channels=(1, 11), dtypes=("float16", "float32", "float64", "int32")), st.booleans())
def test_any_geometry(drawn, last):
    """Any geometry must give the exact result. ``last``: the filter's channels are adjacent."""
    w = np.moveaxis(np.ascontiguousarray(np.moveaxis(drawn.w, 1, -1)), -1, 1) if last else drawn.w

    def result(refusal):
        calls.forget()
        patch.setattr(columns, "refusal", refusal)
        return cg.conv_backward_data(drawn.y, w, drawn.x.shape, **drawn.keywords)

    with pytest.MonkeyPatch.context() as patch:
        expected, found = result(lambda task: "not here"), result(lambda task: None)
    calls.forget()
    np.testing.assert_array_equal(found, expected)


def test_out_is_as_it_was_without_memory(forced):
    """Without memory for the columns or for the sums of their kernel, ``out`` must keep its values."""
    problem = PROBLEMS[0]
    tensors = real_tensors(problem, "float32")
    out = np.full(problem.x_shape, np.nan, np.float32)
    GRADIENT.call(problem, tensors, out=out)
    _, w, y = tensors
    work = forced[0].ready()
    steps = [(step, [(n, (1 << 60,), kind) for n, _, kind in new], freed) for step, new, freed in work.steps]
    huge = Sequence(steps, work.buffer_count, work.last)
    check_no_memory(lambda *out: work.run(y, w, *out), lambda *out: huge.run(y, w, *out), out)


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("text", "reason"),
    (
        ('mb1ic64ih20oc64oh1kh20n"dense"', "y has one position"),
        ('mb60ic64ih9oc64oh2kh8n"images"', "times as long as direct, or exchanged"),
        ('mb1g17ic68ih9oc68oh2kh8n"lanes"', "there are more than 16 groups"),
        ('mb1ic64ih28oc64oh27kh2n"large"', "direct has 1.08 times as many products, less than 1.1"),
        ('mb1ic12ih6oc16oh2kh5n"tiny"', "times as long as direct, or exchanged"),
        ('mb1ic256ih14oc256oh11kh4n"tiles"', "times as long as direct, or exchanged"),
    ),
)
def test_declines(text, reason):
    assert reason in dict(explained(parse(text)).declined)["columns"]


def test_asked_for_otherwise():
    for keywords, reason in (
        ({"algorithm": "winograd"}, "the call asks for the algorithm 'winograd'"),
        ({"algorithm": "direct"}, "the bits of an image must not depend on the batch"),
    ):
        problem = parse('mb1ic64ih4oc64oh2kh3n"taps"') if keywords.get("algorithm") == "winograd" else PROBLEMS[0]
        assert reason in dict(explained(problem, **keywords).declined)["columns"]


def test_scratch_limit():
    before = cg.get_scratch_limit()
    try:
        cg.set_scratch_limit(1000)
        assert dict(explained(PROBLEMS[0]).declined)["columns"].startswith("it takes ")
    finally:
        cg.set_scratch_limit(before)


def test_no_channels(forced):
    """A sum without terms must be zero."""
    for shape, w in (((1, 0, 2, 2), (0, 3, 5, 5)), ((2, 0, 3), (0, 4, 4))):
        result = cg.conv_transpose(np.zeros(shape, np.float32), np.zeros(w, np.float32))
        assert result.size and not result.any()
