"""Filters larger than y: the filter and y are exchanged."""

import sys
from math import prod

import numpy as np
import pytest
from checks import check_layouts, check_not_finite, geometries
from hypothesis import given, settings
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
from convgrad_cy import calls
from convgrad_cy.cpu.rewrites import exchanged

#: Problems that are exchanged in all three operations: one group, groups of one channel and of several, strides,
#: dilation, and padding with which x is smaller than the filter.
PROBLEMS = [
    parse(text)
    for text in (
        'mb3ic5iw420oc4ow21kw400n"one_axis"',
        'mb7ic3ih23oc6oh4kh20n"two_axes"',
        'mb1g16ic16ih21oc16oh5kh17n"depthwise"',
        'mb1g6ic18ih14oc12oh2kh13n"groups"',
        'mb8ic2ih37oc3oh5kh29sh2n"strided"',
        'mb8ic2iw173oc3ow5kw57dw2n"dilated"',
        'mb2ic3id9ih9iw9oc4od2oh2ow2kd8kh8kw8n"three_axes"',
    )
]
#: Problems whose fprop is exchanged as a dgrad of the reversed filter.
REVERSED = [
    parse(text)
    for text in (
        'mb3ic3ih7oc4oh7kh13ph6n"one_group"',
        'mb2g8ic16ih5oc24oh6kh12ph6n"groups"',
        'mb2g4ic4iw5oc4ow49kw27dw1pw48n"dilated"',
    )
]
problems = pytest.mark.parametrize("problem", [*PROBLEMS, *REVERSED], ids=str)
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))


def explained(problem, name, **keywords):
    """The explanation of a function with the problem's own shapes."""
    shapes = {
        "conv": ([problem.x_shape, problem.w_shape], {}),
        "conv_backward_data": ([problem.y_shape, problem.w_shape], {"x_shape": problem.x_shape}),
        "conv_backward_filter": ([problem.x_shape, problem.y_shape], {"w_shape": problem.w_shape}),
    }[name]
    return cg.explain(name, shapes[0], **shapes[1], **problem.keywords, **keywords)


@pytest.mark.tuning
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_taken(problem):
    for name in ("conv", "conv_backward_data", "conv_backward_filter"):
        assert explained(problem, name).family == "exchanged"


@pytest.mark.tuning
@pytest.mark.parametrize("problem", REVERSED, ids=str)
def test_reversed(problem):
    found = explained(problem, "conv")
    assert found.family == "exchanged"
    assert found.details["computed as"] == "dgrad of the filter reversed, with x as its filter"


@problems
@operations
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_exact(problem, operation, data_format, filter_format):
    for dtype in DTYPES:
        tensors, _ = integer_tensors(problem, dtype)
        result = operation.call(problem, tensors, data_format, filter_format)
        assert_exact(result, operation.expected(problem, tensors, data_format, filter_format), dtype)


@problems
@operations
def test_layouts(problem, operation):
    for dtype in ("float32", "bfloat16"):
        check_layouts(operation, problem, dtype, threads=(1,))


@problems
@operations
def test_infinity_reaches_what_its_taps_do(problem, operation):
    """An infinity must reach the results of its taps and no other, although the exchange multiplies padding."""
    check_not_finite(operation, problem, values=(np.inf,))


@settings(max_examples=100)
@given(geometries(axes=2))
def test_any_geometry(drawn):
    """Any geometry, however small, must give the exact result, with the filter reversed or not."""
    x, w, y, keywords = drawn

    def results():
        calls.forget()
        return [
            cg.conv(x, w, **keywords),
            cg.conv_backward_data(y, w, x.shape, **keywords),
            cg.conv_backward_filter(x, y, w.shape, **keywords),
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchanged, "refusal", lambda task: "not here")
        expected = results()
        patch.setattr(exchanged, "refusal", lambda task: None)
        found = results()
        reverses = {"fprop": prod(keywords["stride"]) == 1}
        patch.setattr(exchanged, "_is_reversed", lambda task: reverses.get(task.operation, False))
        found += results()
    calls.forget()
    for one, other in zip(found, expected * 2, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("text", "name", "reason"),
    (
        ('mb1ic3ih20oc4oh16kh5n"small"', "conv_backward_data", "the filter is not larger than y"),
        ('mb1ic3ih14oc4oh6kh9n"hardly"', "conv", "the filter is less than 10.0 times as large as y"),
        ('mb1g3ic3ih13oc3oh6kh8n"hardly"', "conv_backward_filter", "the filter is less than 2.5 times as large as y"),
        ('mb1ic64ih20oc4oh8kh13n"image"', "conv_backward_data", "times as long as direct"),
        ('mb1ic3ih96oc4oh3kh32sh32n"apart"', "conv", "the filter is less than 3 times as large as the stride"),
        ('mb2g16ic16ih130oc16oh6kh30sh20n"apart"', "conv", "the filter is less than 6 times as large as the stride"),
        ('mb1g9ic9ih40oc9oh14kh27n"lanes"', "conv_backward_data", "the filter is less than 5.0 times as large as y"),
        ('mb4ic3ih9oc4oh1kh9n"dense"', "conv", "y has one position"),
        ('mb8g17ic68ih8oc68oh2kh7n"few"', "conv_backward_data", "x has at most 64 positions"),
    ),
)
def test_declines(text, name, reason):
    assert reason in dict(explained(parse(text), name).declined)["exchanged"]


def test_no_images():
    """A batch of no images must give zeros: its images would be channels, and no copy may read them."""
    w = (8, 2, 4, 5)
    for data_format in DATA_FORMATS:
        x, y = ((0, 16, 4, 5), (0, 8, 1, 1)) if data_format == "NCX" else ((0, 4, 5, 16), (0, 1, 1, 8))
        x, y = np.zeros(x, np.float32), np.zeros(y, np.float32)
        result = cg.conv_backward_filter(x, y, w, groups=8, data_format=data_format)
        np.testing.assert_array_equal(result, np.zeros(w))


def test_winograd_asked_for():
    reasons = dict(explained(parse('mb7ic3ih7oc6oh4kh4n"taps"'), "conv", algorithm="winograd").declined)
    assert reasons["exchanged"] == "the filter is not larger than y"
    reasons = dict(explained(parse('mb7ic3ih6oc6oh2kh5n"taps"'), "conv", algorithm="winograd").declined)
    assert reasons["exchanged"] == "the call asks for the algorithm 'winograd'"


@pytest.mark.tuning
def test_direct_asked_for():
    """With "direct", an image must have the bits that it has alone. No gradient of a filter could have them."""
    for name in ("conv", "conv_backward_data"):
        found = explained(PROBLEMS[0], name, algorithm="direct")
        assert found.family == "direct" and "must not depend on the batch" in dict(found.declined)["exchanged"]
    assert explained(PROBLEMS[0], "conv_backward_filter", algorithm="direct").family == "exchanged"


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("mb4g64ic64ih51oc64oh7kh45", "exchanged"),
        ("mb4g64ic64ih21oc64oh7kh15", "small_groups"),  # few taps
        ("mb4g64ic64ih12oc64oh12kh31ph15", "small_groups"),  # a filter larger than x
        ("mb4g32ic64ih105iw19oc64oh7ow12kh99kw8", "small_groups"),  # groups of several channels
    ],
)
def test_gradients_of_depthwise_layers(text, family):
    """Only large filters of depthwise layers must leave small groups."""
    assert explained(parse(f'{text}n"groups"'), "conv_backward_data").family == family


def test_y_with_many_positions(monkeypatch):
    """A y with many positions must be rejected: its positions would be taps, and their number is limited."""
    monkeypatch.setattr(exchanged, "TAP_LIMIT", 21)
    reasons = dict(explained(PROBLEMS[0], "conv").declined)
    assert reasons["exchanged"] == "y has 21 positions or more"


@pytest.mark.parametrize("problem", [PROBLEMS[0], REVERSED[0]], ids=str)
def test_a_call_that_is_known_keeps_no_array(problem):
    calls.forget()
    tensors = real_tensors(problem, "float32")
    x, w = (tensor.copy() for tensor in tensors[:2])
    before = sys.getrefcount(x), sys.getrefcount(w)
    cg.conv(x, w, **problem.keywords)
    assert (sys.getrefcount(x), sys.getrefcount(w)) == before
