"""``convgrad_cy.shims.tensorflow`` against a recording of TensorFlow 2.21, and against its own tests."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import reference
from conformance import record_tensorflow, replay, tensorflow_errors, tensorflow_values

from convgrad_cy.shims import tensorflow as tf

ORIGIN, RECORDED = replay.load(record_tensorflow.PATH)
NAMES = {
    "C": tf.raw_ops.Conv2D,
    "I": tf.raw_ops.Conv2DBackpropInput,
    "F": tf.raw_ops.Conv2DBackpropFilter,
    "t": replay.tensor,
    "T": lambda array: array,
}
UPSTREAM = json.loads((Path(__file__).parents[1] / "conformance" / "tensorflow_upstream.json").read_text())
#: Messages that DECISIONS.md corrects: upstream's message -> the message here.
CORRECTED = {
    "Current CPU implementations do not yet support dilation rates larger than 1.": "Dilated rates should be larger "
    "than 0.",
    "filter depth must be stricly positive, got 0": "filter depth must be strictly positive, got 0",
}
CORRECTED |= {
    f"Conv2DCustomBackprop{of}: filter depth must be strictly greated than zero": f"Conv2DCustomBackprop{of}: filter "
    "depth must be strictly greater than zero"
    for of in ("Input", "Filter")
}
CORRECTED |= {
    f"input_sizes must be 4-dimensional, got: {rank}": f"out_backprop must be 4-dimensional, got: {rank}"
    for rank in (0, 1, 2, 3, 5)
}


def is_other_message(expected, actual):
    """Whether a message is neither the recorded nor a corrected one. XLA's own messages need not be kept."""
    known = expected.error is None or expected.text.startswith(record_tensorflow.XLA)
    return not known and CORRECTED.get(expected.text, expected.text) != actual.text


def here(expression):
    return replay.evaluate(expression, NAMES)


def family(expression):
    return expression[0]


def is_rounded_once(expression, actual):
    """Whether a 16-bit result is the exact one, rounded. Upstream sums some in half precision, even in XLA."""
    (half,) = [name for name in ("bfloat16", "float16") if f'"{name}"' in expression] or [None]
    if half is None or actual.array is None:
        return False
    exact = here(expression.replace(f'"{half}"', '"float64"')).array
    return np.array_equal(exact.astype(actual.array.dtype), actual.array)


def compare(expression, expected, actual):
    """Compare with the recording. A value may be one that upstream summed in 16 bits. The class must be equal."""
    problem = replay.difference(expected, actual)
    if problem and expected.array is not None and is_rounded_once(expression, actual):
        return "values that TensorFlow sums in 16 bits", None
    if is_other_message(expected, actual):
        problem = f"{replay.shown(expected)}\n  here: {replay.shown(actual)}"
    return None, problem


@pytest.mark.parametrize("op", "CIF")
def test_recording_is_large_enough(op):
    outcomes = [outcome for expression, outcome in RECORDED.items() if family(expression) == op]
    assert ORIGIN == "tensorflow-cpu 2.21.0"
    assert sum(outcome.array is not None for outcome in outcomes) >= 200
    assert sum(outcome.error is not None for outcome in outcomes) >= 150


@pytest.mark.parametrize("op", "CIF")
def test_replay(op):
    """Every value, and every class and message of an exception, must be the recorded one."""
    outcomes = [(each, expected, here(each)) for each, expected in RECORDED.items() if family(each) == op]
    counts, wrong = replay.tally(outcomes, compare)
    assert not wrong, replay.listed(wrong)
    assert counts["same value"] + counts["same error"] == len(outcomes)


def test_share_of_identical_messages(capsys):
    """All messages must be identical, except for the corrections in DECISIONS.md."""
    pairs = [(expected, here(expression)) for expression, expected in RECORDED.items() if expected.error]
    with capsys.disabled():
        share = replay.print_share_of_messages("tensorflow, the others being corrected ones or XLA's", pairs)
    assert share >= 0.95


def test_difference_is_seen():
    """Another padding, another class and another message must not pass."""
    call = tensorflow_errors.refused("I")
    result = here(call)
    assert replay.difference(result, result) is None
    assert replay.difference(result, here(call.replace('"VALID"', '"SAME"')))
    assert replay.difference(result, replay.Outcome(result.array + 1))
    assert replay.difference(here("I(1)"), here(call.replace('"VALID"', '"valid"')))
    counts, wrong = replay.tally([(call, result, result), ("I(1)", here("I(1)"), result)], compare)
    assert counts == {"same value": 1, "wrong error": 1} and [*wrong] == ["I(1)"]


# TensorFlow's own tests


def upstream(kind):
    cases = [case for case in UPSTREAM if case["kind"] == kind]
    return pytest.mark.parametrize("case", cases, ids=[f"{i} {case['test']}" for i, case in enumerate(cases)])


def run_upstream(case, data_format, dtype):
    """The case's call, with its result in NHWC. NCHW is made by transposing, as upstream does."""
    fill = np.ones if "ones" in case["data"] else lambda shape: np.arange(1, 1 + np.prod(shape)).reshape(shape)
    filter, dy = (fill(case[name]).astype(dtype) for name in ("filter_shape", "out_backprop_shape"))
    sizes = case["input_sizes"]
    pads = case.get("explicit_paddings_nhwc", [])
    strides, dilations = ([1, *case[name], 1] for name in ("strides_hw", "dilations_hw"))
    if data_format == "NCHW":
        dy = dy.transpose(0, 3, 1, 2)
        strides, dilations = ([1, 1, *values[1:3]] for values in (strides, dilations))
        pads = pads and [*pads[:2], *pads[6:], *pads[2:6]]
        sizes = sizes if len(sizes) == 2 else [sizes[0], sizes[3], *sizes[1:3]]
    result = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=sizes, filter=filter, out_backprop=dy, strides=strides, padding=case["padding"],
        explicit_paddings=pads, data_format=data_format, dilations=dilations,
    )  # fmt: skip
    return result.transpose(0, 2, 3, 1) if data_format == "NCHW" else result


def check_upstream(case, data_format, dtype):
    result = run_upstream(case, data_format, dtype)
    assert result.dtype == dtype
    sizes = case["input_sizes"]
    if len(sizes) == 2:
        sizes = [case["out_backprop_shape"][0], *sizes, case["filter_shape"][2]]
    assert result.shape == tuple(sizes)
    assert result.ravel().tolist() == case["expected"]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@upstream("literal")
def test_upstream_literal(case, data_format):
    check_upstream(case, data_format, np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@upstream("rule")
def test_upstream_rule(case, data_format, dtype):
    check_upstream(case, data_format, dtype)


@upstream("geometry_only")
def test_upstream_geometry(case):
    """The case must agree with the definition, for both gradients and the convolution; upstream's is numerical."""
    begin, attributes = _padding_of(case)
    depth = case["in_depth"] // case.get("num_groups", 1)
    x = replay.tensor("float64", (case["batch"], *case["input_hw"], case["in_depth"]), 1)
    w = replay.tensor("float64", (*case["filter_hw"], depth, case["out_depth"]), 2)
    attributes |= {"strides": [1, *case["strides_hw"], 1], "padding": case["padding"]}
    y = tf.raw_ops.Conv2D(input=x, filter=w, **attributes)
    dy = replay.tensor("float64", y.shape, 3)
    dx = tf.raw_ops.Conv2DBackpropInput(input_sizes=x.shape, filter=w, out_backprop=dy, **attributes)
    dw = tf.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=w.shape, out_backprop=dy, **attributes)

    x, y, dx, dy = (array.transpose(0, 3, 1, 2) for array in (x, y, dx, dy))
    w, dw = (array.transpose(3, 2, 0, 1) for array in (w, dw))
    options = {
        "stride": case["strides_hw"],
        "dilation": (1, 1),
        "pad_begin": begin,
        "groups": case.get("num_groups", 1),
    }
    assert np.array_equal(y, reference.fprop(x, w, y.shape, **options))
    assert np.array_equal(dx, reference.dgrad(dy, w, x.shape, **options))
    assert np.array_equal(dw, reference.wgrad(x, dy, w.shape, **options))


def _padding_of(case):
    """The padding at the beginning of both axes, computed here for SAME, and the attributes that express it."""
    if case["padding"] == "EXPLICIT":
        pads = case["explicit_paddings_hw"]
        return pads[::2], {"explicit_paddings": [0, 0, *pads, 0, 0]}
    begin = [0, 0]
    if case["padding"] == "SAME":
        for i, (size, kernel, stride) in enumerate(
            zip(case["input_hw"], case["filter_hw"], case["strides_hw"], strict=True)
        ):
            begin[i] = max(0, (-(-size // stride) - 1) * stride + kernel - size) // 2
    return begin, {}


@upstream("error")
def test_upstream_error(case):
    if "shapes" in case:  # cases of the shape function; unknown sizes get numbers
        sizes, dy = ([1, 2, 3], (1, 1, 1, 1)) if case["shapes"].startswith("[3]") else ([1, 1, 1, 1], (1, 1, 1))
        call = {"input_sizes": sizes, "filter": np.ones((1, 1, 1, 1)), "strides": [1] * 4, "padding": "VALID"}
    else:
        call = {name: case[name] for name in ("input_sizes", "strides", "padding", "explicit_paddings") if name in case}
        call["filter"], dy = np.ones(case["filter_shape"]), case["out_backprop_shape"]
    # The second shape function says "Shape must be rank 4"; here the kernel says so.
    pattern = case.get("message_regex", ".").replace(
        "Shape must be rank 4 but is rank 3", "must be 4-dimensional, got: 3"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=pattern):
        tf.raw_ops.Conv2DBackpropInput(out_backprop=np.ones(dy), **call)


@upstream("shape_ok")
def test_upstream_shape(case):
    """The batch must come from out_backprop, and the channels from the filter."""
    sizes = [7, 4, 5, 2] if case["shapes"].startswith("[4]") else [4, 5]
    w, dy = np.ones((3, 3, 2, 6)), np.ones((7, 2, 3, 6))
    result = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=sizes, filter=w, out_backprop=dy, strides=[1, 1, 1, 1], padding="VALID"
    )
    assert result.shape == (7, 4, 5, 2)


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("default")  # TensorFlow's own
def test_live(capsys):
    """New random calls must agree with the installed TensorFlow."""
    calls, seed = replay.live_settings()
    rng, names, outcomes = random.Random(seed), record_tensorflow.framework(), []
    for _ in range(calls):
        draw = tensorflow_values.draw if rng.random() < 0.6 else tensorflow_errors.draw_error
        expression = draw(rng)
        outcomes.append((expression, record_tensorflow.evaluate(expression, names), here(expression)))
    counts, wrong = replay.tally(outcomes, compare)
    pairs = [(expected, actual) for _, expected, actual in outcomes if expected.error]
    with capsys.disabled():
        replay.print_share_of_messages(f"tensorflow, live, {calls} calls, seed {seed}", pairs)
        replay.print_counts("tensorflow, live", counts)
    assert not wrong, replay.listed(wrong)
