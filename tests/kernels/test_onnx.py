"""The node tests of the ONNX backend for Conv and ConvTranspose: another project's cases and expected values."""

import contextlib
from importlib.util import find_spec

import numpy as np
import pytest

import convgrad_cy as cg

pytestmark = pytest.mark.onnx


def node_cases():
    """The cases, by name. Importing ONNX's two modules of generators makes them."""
    from onnx.backend.test.case import node
    from onnx.backend.test.case.node import conv, convtranspose  # noqa: F401

    cases = {case.name: case for case in node._NodeTestCases}
    return {name: case for name, case in cases.items() if case.model.graph.node[0].op_type in ("Conv", "ConvTranspose")}


CASES = node_cases() if find_spec("onnx") else {}


def attributes_of(node):
    from onnx.helper import get_attribute_value

    return {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}


def padding_of(attributes, rank):
    """The argument ``padding`` of convgrad_cy. ONNX lists all begins, then all ends."""
    word = attributes.get("auto_pad", b"NOTSET").decode()
    if word != "NOTSET":
        return word.lower()
    pads = attributes.get("pads", [0] * 2 * rank)
    return tuple(zip(pads[:rank], pads[rank:], strict=True))


def pads_for_output_shape(attributes, x, w):
    """ONNX's formula for the padding that makes a ConvTranspose have the output_shape."""
    rank = x.ndim - 2
    ones, zeros = [1] * rank, [0] * rank
    pads = []
    for i, output in enumerate(attributes["output_shape"]):
        stride, dilation = attributes.get("strides", ones)[i], attributes.get("dilations", ones)[i]
        extent = (w.shape[2 + i] - 1) * dilation + 1
        total = stride * (x.shape[2 + i] - 1) + attributes.get("output_padding", zeros)[i] + extent - output
        total = max(0, total)  # an output beyond all taps has no padding and ends in zeros
        small, large = total // 2, total - total // 2
        pads.append((small, large) if attributes.get("auto_pad") == b"SAME_UPPER" else (large, small))
    return tuple(pads)


def run(node, inputs):
    """A Conv or ConvTranspose node, translated."""
    attributes = attributes_of(node)
    x, w, *bias = inputs
    rank = x.ndim - 2
    known = {"kernel_shape", "strides", "dilations", "group", "auto_pad", "pads", "output_padding", "output_shape"}
    assert set(attributes) <= known
    assert list(attributes.get("kernel_shape", w.shape[2:])) == list(w.shape[2:])
    keywords = {
        "stride": attributes.get("strides", [1] * rank),
        "dilation": attributes.get("dilations", [1] * rank),
        "groups": attributes.get("group", 1),
        "padding": padding_of(attributes, rank),
    }
    if node.op_type == "Conv":
        result = cg.conv(x, w, **keywords)
    elif "output_shape" in attributes:
        keywords["padding"] = pads_for_output_shape(attributes, x, w)
        shape = (x.shape[0], w.shape[1] * keywords["groups"], *attributes["output_shape"])
        result = cg.conv_transpose(x, w, output_shape=shape, **keywords)
    else:
        result = cg.conv_transpose(x, w, output_padding=attributes.get("output_padding", [0] * rank), **keywords)
    for vector in bias:
        result = result + vector.reshape(-1, *[1] * rank)
    return result


@pytest.mark.parametrize("name", CASES or [None])
def test_node(name):
    case = CASES[name]
    (node,) = case.model.graph.node
    for inputs, outputs in case.data_sets:
        (expected,) = outputs
        result = run(node, inputs)
        assert result.dtype == expected.dtype
        # The cases' data are small integers, so the results must be equal.
        assert all((array == np.rint(array)).all() for array in inputs)
        np.testing.assert_array_equal(result, expected)


def test_cases_are_found():
    """The package must have at least these cases, so that a renamed module does not silently test nothing."""
    assert len([name for name in CASES if "convtranspose" in name]) >= 10
    assert len(CASES) >= 15


def test_wrong_translation_is_seen():
    """Another stride or group must give an error or another result: the cases depend on the attributes."""
    case = CASES["test_convtranspose_pads"]
    (node,) = case.model.graph.node
    changed = type(node)()
    changed.CopyFrom(node)
    next(a for a in changed.attribute if a.name == "pads").ints[:] = [2, 1, 0, 3]
    ((inputs, (expected,)),) = case.data_sets
    with contextlib.suppress(ValueError):
        result = run(changed, inputs)
        assert result.shape == expected.shape and not np.array_equal(result, expected)
