"""``convgrad_cy.shims.mindspore`` against a recording of MindSpore 2.10, and against its two documents."""

import doctest
import inspect
import random

import numpy as np
import pytest
from conformance import record_mindspore, replay

from convgrad_cy.shims.mindspore import Conv2DBackpropInput, Conv2DTranspose

BOTH = pytest.mark.parametrize("operator", [Conv2DBackpropInput, Conv2DTranspose])
ORIGIN, RECORDED = replay.load(record_mindspore.PATH)
NAMES = {
    "B": Conv2DBackpropInput,
    "T": Conv2DTranspose,
    "t": replay.tensor,
    "ints": lambda sizes: np.array(sizes, np.int64),
}
#: Rows of DECISIONS.md that allow a call which MindSpore refuses: row -> (exception, part of its message).
DECIDED = {
    "data_format": ("ValueError", "the 'NHWC' format is only supported in GPU target"),
    "mode": ("ValueError", "the 'mode' must be int and must = 1"),
    "dtypes": ("TypeError", "must be a type of {Tensor[BFloat16], Tensor[Float16], Tensor[Float32], Tensor[Int32]"),
    "dtypes, in the choice of a kernel": ("TypeError", "fail! Unsupported data type!"),
    "tensors are arrays": ("TypeError", "must be int32 or int64, but got"),
}


#: MindSpore silently reads only the first rows of a weight that has too many for its groups.
UNREAD = "weight.shape[0] must be a multiple of groups"


def decided(expected, actual):
    """The reason why an outcome may differ from the recorded one, or None."""
    for row, (error, part) in DECIDED.items():
        if expected.error == error and part in expected.text:
            return row
    unread = expected.array is not None and actual.error == "ShapeError" and UNREAD in actual.text
    return "rows of weight that MindSpore does not read" if unread else None


def compare(expression, expected, actual):
    problem = replay.difference(expected, actual)
    rule = decided(expected, actual) if problem else None
    return rule, None if rule else problem


def here(expression):
    return replay.evaluate(expression, NAMES)


def is_construction(expression):
    return ")(" not in expression


def test_recording_is_large_enough():
    assert ORIGIN == "mindspore 2.10.0, CPU"
    assert sum(outcome.array is not None for outcome in RECORDED.values()) >= 200
    assert sum(outcome.error is not None for outcome in RECORDED.values()) >= 150


def test_replay():
    """Every value must be the recorded one, and every class of exception, except for the changes in DECISIONS.md."""
    outcomes = [(expression, expected, here(expression)) for expression, expected in RECORDED.items()]
    counts, wrong = replay.tally(outcomes, compare)
    assert not wrong, replay.listed(wrong)
    assert counts["same value"] + counts["same error"] > 0.95 * len(RECORDED), "DECISIONS.md has exceptions"


@pytest.mark.parametrize("construction, least", [(True, 0.95), (False, 0)], ids=["construction", "call"])
def test_share_of_identical_messages(construction, least, capsys):
    pairs = [(o, here(e)) for e, o in RECORDED.items() if o.error and is_construction(e) is construction]
    pairs = [pair for pair in pairs if not decided(*pair)]
    kind = "construction" if construction else "call"
    with capsys.disabled():
        share = replay.print_share_of_messages(f"mindspore, errors at {kind}", pairs)
    assert share >= least


@BOTH
def test_signature(operator):
    assert str(inspect.signature(operator)) == (
        "(out_channel, kernel_size, pad_mode='valid', pad=0, pad_list=None, mode=1, stride=1, dilation=1, group=1, "
        "data_format='NCHW')"
    )


# One test for each row of the documents' tables of exceptions.


def refused(error, operator, **attributes):
    with pytest.raises(error) as caught:
        operator(**{"out_channel": 2, "kernel_size": 3} | attributes)
    assert type(caught.value) is error
    return str(caught.value)


@BOTH
@pytest.mark.parametrize("name", ["kernel_size", "stride", "pad", "dilation"])
@pytest.mark.parametrize("value", [1.5, "1", None, [1, 1], True, np.int64(1), np.ones(2, int)])
def test_type_error_if_kernel_size_stride_pad_or_dilation_is_neither_an_int_nor_a_tuple(operator, name, value):
    expected = f"the type of '{name}' should be one of '['int', 'tuple']', but got type '{type(value).__name__}'."
    assert refused(TypeError, operator, **{name: value}) == f"For '{operator.__name__}', {expected}"


@BOTH
@pytest.mark.parametrize("name", ["out_channel", "group"])
@pytest.mark.parametrize("value", [1.0, "1", None, (1,), np.int64(1)])
def test_type_error_if_out_channel_or_group_is_not_an_int(operator, name, value):
    expected = f"For '{operator.__name__}', the '{name}' must be int, but got '{type(value).__name__}'"
    assert refused(TypeError, operator, **{name: value}) == expected


@BOTH
@pytest.mark.parametrize("name", ["kernel_size", "stride", "dilation"])
@pytest.mark.parametrize("value", [0, -1, (0, 1), (1, -2)])
def test_value_error_if_kernel_size_stride_or_dilation_is_less_than_1(operator, name, value):
    words = "two" if name == "kernel_size" else "two or four"
    expected = f"must be an positive int number or a tuple of {words} positive int numbers, but got {value}"
    assert refused(ValueError, operator, **{name: value}) == f"For '{operator.__name__}' attr '{name}' {expected}"


@BOTH
@pytest.mark.parametrize("value", ["full", "CONSTANT", "", "same_upper"])
def test_value_error_if_pad_mode_is_not_one_of_same_valid_pad(operator, value):
    expected = f"the 'pad_mode' must be str and must be in '['valid', 'same', 'pad']', but got '{value.lower()}'."
    assert refused(ValueError, operator, pad_mode=value) == f"For '{operator.__name__}', {expected}"


@BOTH
@pytest.mark.parametrize("value", [(), (0,), (0, 0), (1, 1, 1), (0,) * 5])
@pytest.mark.parametrize("pad_mode", ["valid", "same", "pad"])
def test_value_error_if_padding_is_a_tuple_whose_length_is_not_equal_to_4(operator, value, pad_mode):
    expected = f"the 'pad size' must be int and must = 4, but got '{len(value)}' with type 'int'."
    assert refused(ValueError, operator, pad=value, pad_mode=pad_mode) == f"For '{operator.__name__}', {expected}"


@BOTH
@pytest.mark.parametrize("value", [1, -1, (0, 0, 0, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("pad_mode", ["valid", "same", "VALID", "PAD"])
def test_value_error_if_pad_mode_is_not_equal_to_pad_and_pad_is_not_zero(operator, value, pad_mode):
    expected = (
        f"For '{operator.__name__}', the 'pad' must be zero or (0, 0, 0, 0) when 'pad_mode' is not \"pad\", "
        f"but got 'pad' is {value} and 'pad_mode' is {pad_mode}."
    )
    assert refused(ValueError, operator, pad=value, pad_mode=pad_mode) == expected


@BOTH
@pytest.mark.parametrize("value", ["nchw", "NCDHW", "", None, 1, b"NCHW"])
def test_value_error_if_data_format_is_neither_nchw_nor_nhwc(operator, value):
    expected = f"the 'format' must be str and must be in '['NCHW', 'NHWC']', but got '{value}'."
    assert refused(ValueError, operator, data_format=value) == f"For '{operator.__name__}', {expected}"


# The documents' examples. Only the module in the import lines has changed.

EXAMPLES = {
    "Conv2DBackpropInput": """
import numpy as np
from convgrad_cy.shims.mindspore import Tensor
from convgrad_cy.shims.mindspore import dtype as mstype
from convgrad_cy.shims.mindspore import ops as F
from convgrad_cy.shims.mindspore import ops
dout = Tensor(np.ones([10, 32, 30, 30]), mstype.float32)
weight = Tensor(np.ones([32, 32, 3, 3]), mstype.float32)
input_x = Tensor(np.ones([10, 32, 32, 32]))
conv2d_backprop_input = ops.Conv2DBackpropInput(out_channel=32, kernel_size=3)
output = conv2d_backprop_input(dout, weight, F.shape(input_x))
print(output.shape)
""",
    "Conv2DTranspose": """
import numpy as np
from convgrad_cy.shims import mindspore
from convgrad_cy.shims.mindspore import Tensor, ops
dout = Tensor(np.ones([10, 32, 30, 30]), mindspore.float32)
weight = Tensor(np.ones([32, 32, 3, 3]), mindspore.float32)
x = Tensor(np.ones([10, 32, 32, 32]))
conv2d_transpose_input = ops.Conv2DTranspose(out_channel=32, kernel_size=3)
output = conv2d_transpose_input(dout, weight, ops.shape(x))
print(output.shape)
""",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_of_the_document(name, capsys):
    exec(EXAMPLES[name], {})
    assert capsys.readouterr().out == "(10, 32, 32, 32)\n"


@BOTH
def test_docstring_example(operator):
    (test,) = doctest.DocTestFinder(recurse=False).find(operator, operator.__name__, globs={})
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_upstream_case():
    """The literal case of MindSpore's own tests must pass, although its attributes disagree with the tensors."""
    weight = np.array([[[[1, 0, -1]] * 3]], np.float32)
    dout = np.array([[[[-5, -4, 0, 8], [-10, -2, 2, 3], [0, -2, -4, -7], [-3, -2, -3, -16]]]], np.float32)
    expected = """-5 -4 5 12 0 -8  -15 -6 17 17 -2 -11  -15 -8 13 12 2 -4  -13 -6 8 -14 5 20  -3 -4 -4 -19 7 23
        -3 -2 0 -14 3 16"""
    for operator in (Conv2DBackpropInput, Conv2DTranspose):
        result = operator(out_channel=4, kernel_size=1)(dout, weight, (1, 1, 6, 6))
        assert result.ravel().tolist() == [int(word) for word in expected.split()]


@pytest.mark.mindspore
@pytest.mark.filterwarnings("default")  # MindSpore warns at its import
def test_live(capsys):
    """New random calls must agree with the installed MindSpore."""
    calls, seed = replay.live_settings()
    draw, names = random.Random(seed), record_mindspore.real()
    expressions = [record_mindspore.random_call(draw) for _ in range(calls)]
    outcomes = [(each, record_mindspore.evaluate_real(each, names), here(each)) for each in expressions]
    counts, wrong = replay.tally(outcomes, compare)
    with capsys.disabled():
        print(f"\nmindspore, live, {calls} calls, seed {seed}")
        replay.print_counts("mindspore, live", counts)
    assert not wrong, replay.listed(wrong)
