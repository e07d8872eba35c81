"""One test for each row of attributes in oneDNN's two documents, and for each decision on them, under both names.

test_shims_onednn.py compares with recorded answers of oneDNN itself.
"""

import numpy as np
import pytest
from conformance.onednn_examples import ARGUMENTS, FILTER, GEOMETRY, GRAPH_OP, OPERATIONS, SHAPE, Y, call, ones, refused

import convgrad_cy as cg
from convgrad_cy.shims import onednn


@pytest.fixture(params=OPERATIONS, ids=lambda operation: operation.__name__)
def operation(request):
    return request.param


def test_correct_call(operation):
    result = call(operation)
    assert result.shape == OPERATIONS[operation][2] and result.dtype == np.float32


@pytest.mark.parametrize("name", GEOMETRY)
class TestGeometryRows:
    """strides, pads_begin, pads_end, dilations: s64[], required."""

    def test_required(self, operation, name):
        assert f"{name} is required" in refused(operation, GRAPH_OP, TypeError, **{name: ...})
        refused(operation, GRAPH_OP, TypeError, **{name: None})

    @pytest.mark.parametrize("value", [1, 1.0, "11", [1.0, 1.0], [True, 1], ["1", "1"], {1: 1}, [None, 1]], ids=repr)
    def test_type_s64_list(self, operation, name, value):
        assert name in refused(operation, GRAPH_OP, TypeError, **{name: value})

    @pytest.mark.parametrize("value", [[1], [1, 1, 1]], ids=repr)
    def test_one_for_each_axis(self, operation, name, value):
        refused(operation, SHAPE, ValueError, **{name: value})

    def test_range(self, operation, name):
        status = GRAPH_OP if "pads" in name else ARGUMENTS
        refused(operation, status, ValueError, **{name: [-1, 1]})
        refused(operation, status, ValueError, **{name: [1, 2**63]})
        if "pads" not in name:
            refused(operation, status, ValueError, **{name: [1, 0]})

    def test_empty(self, operation, name):
        refused(operation, ARGUMENTS, ValueError, **{name: []})

    @pytest.mark.parametrize("convert", [tuple, list, np.array, lambda values: [np.int64(value) for value in values]])
    def test_sequences_of_integers(self, operation, name, convert):
        np.testing.assert_array_equal(call(operation, **{name: convert(GEOMETRY[name])}), call(operation))


class TestAutoPadRow:
    """auto_pad: string, not required, default none."""

    @pytest.mark.parametrize("value", ["none", "None", None])
    def test_none_uses_the_pads(self, operation, value):
        np.testing.assert_array_equal(call(operation, auto_pad=value), call(operation))

    @pytest.mark.parametrize(
        "upper, lower", [("VALID", "valid"), ("SAME_UPPER", "same_upper"), ("SAME_LOWER", "same_lower")]
    )
    def test_spelling(self, upper, lower):
        """DECISIONS, spelling: the spellings of the documents and of v3 must both be accepted."""
        op = onednn.ConvolutionBackpropData
        shape = (2, 6, 6, 3) if upper == "VALID" else (2, 6, 4, 3)
        inputs = ones(2, 3, 2, 4) if upper == "VALID" else ones(2, 3, 4, 4), ones(*FILTER)
        results = [call(op, inputs, auto_pad=value, output_shape=shape) for value in (upper, lower)]
        np.testing.assert_array_equal(*results)

    @pytest.mark.parametrize("value", ["SAME", "Valid", "NONE", "same upper"])
    def test_other_spelling(self, operation, value):
        message = refused(operation, GRAPH_OP, ValueError, auto_pad=value)
        for name in ("none", "valid", "same_upper", "same_lower", "None", "VALID", "SAME_UPPER", "SAME_LOWER"):
            assert repr(name) in message

    def test_type(self, operation):
        refused(operation, GRAPH_OP, TypeError, auto_pad=1)
        refused(operation, ARGUMENTS, ValueError, auto_pad="")

    @pytest.mark.parametrize("n, k, s, d, upper, lower", [
        (5, 2, 1, 1, (0, 1), (1, 0)), (5, 4, 1, 1, (1, 2), (2, 1)), (6, 3, 2, 1, (0, 1), (1, 0)),
        (7, 4, 2, 1, (1, 2), (2, 1)), (8, 3, 2, 2, (1, 2), (2, 1)), (7, 3, 2, 1, (1, 1), (1, 1)),
        (8, 4, 3, 1, (1, 1), (1, 1)), (9, 5, 3, 1, (1, 1), (1, 1)), (6, 1, 2, 1, (0, 0), (0, 0)),
        (5, 2, 3, 1, (0, 0), (0, 0)),
    ])  # fmt: skip
    def test_odd_extra_is_at_the_end_for_same_upper(self, n, k, s, d, upper, lower):
        """DECISIONS, auto_pad: the odd element must be where description and library put it, not the formula."""
        rng = np.random.default_rng(1)
        dy, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((1, -(-n // s), 1), (k, 1, 1)))
        common = {"strides": [s], "dilations": [d], "output_shape": [1, n, 1]}
        for name, (begin, end) in (("same_upper", upper), ("same_lower", lower)):
            explicit = onednn.ConvolutionBackpropData(**common, pads_begin=[begin], pads_end=[end])
            automatic = onednn.ConvolutionBackpropData(**common, auto_pad=name)
            np.testing.assert_array_equal(automatic(dy, w), explicit(dy, w))

    @pytest.mark.parametrize(
        "pads", [{}, {"pads_begin": [9, 7], "pads_end": [8, 8]}, {"pads_begin": ..., "pads_end": ...}]
    )
    def test_pads_are_ignored_and_may_be_omitted(self, operation, pads):
        """Both documents' note, and DECISIONS, ranges: the result must be the one for the pads of "same"."""
        _, shapes, _ = OPERATIONS[operation]
        first, second = (np.random.default_rng(1).integers(-4, 5, a.shape).astype(np.float32) for a in shapes)
        inputs = (first[:, :, :3], second) if operation.makes == "x" else (first[:, :, :3], second[:, :, :3])
        shape = {operation.shape: (2, 6, 3, 3)} if operation.makes == "x" else {}
        expected = call(operation, inputs, pads_begin=[0, 2], pads_end=[0, 2], **shape)
        np.testing.assert_array_equal(call(operation, inputs, auto_pad="same_upper", **shape, **pads), expected)

    def test_pads_must_be_well_formed(self, operation):
        """DECISIONS, ranges."""
        refused(operation, GRAPH_OP, ValueError, auto_pad="same_upper", pads_begin=[-1, 0])
        refused(operation, SHAPE, ValueError, auto_pad="same_upper", pads_end=[0])

    def test_size(self):
        """The number of positions must be as in a "same" convolution."""
        op = onednn.ConvolutionBackpropData
        refused(op, ARGUMENTS, ValueError, (ones(2, 4, 4, 4), ones(*FILTER)), auto_pad="same_upper")


class TestOutputPaddingRow:
    """output_padding: s64[], not required, all zeros."""

    def test_range(self, operation):
        refused(operation, ARGUMENTS, ValueError, output_padding=[-1, 0])

    def test_type(self, operation):
        refused(operation, GRAPH_OP, TypeError, output_padding=1)

    def test_one_for_each_axis(self, operation):
        refused(operation, SHAPE, ValueError, output_padding=[0])

    def test_explicit_pads_alone_count(self, operation):
        """DECISIONS, output_padding."""
        np.testing.assert_array_equal(call(operation, output_padding=[5, 5]), call(operation))

    @pytest.mark.parametrize("name, pads", [("same_upper", (1, 1)), ("same_lower", (1, 1))])
    def test_enters_the_total_under_auto_pad(self, name, pads):
        """DECISIONS, output_padding: n = 6, k = 3, s = 2, p = 3 and one element more must be padded by (1, 1)."""
        dy, w = np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1), np.arange(1, 4, dtype=np.float32).reshape(3, 1, 1)
        common = {"strides": [2], "dilations": [1], "output_shape": [1, 6, 1]}
        automatic = onednn.ConvolutionBackpropData(**common, auto_pad=name, output_padding=[1])
        explicit = onednn.ConvolutionBackpropData(**common, pads_begin=[pads[0]], pads_end=[pads[1]])
        np.testing.assert_array_equal(automatic(dy, w), explicit(dy, w))

    def test_less_than_strides_in_conv_transpose(self):
        op = onednn.ConvTranspose(**GEOMETRY, output_padding=[2, 0])
        with pytest.raises(onednn.GraphValueError, match=r"output_padding\[0\] must be less than strides\[0\] = 2"):
            op(ones(*Y), ones(*FILTER))


class TestGroupsRow:
    """groups: s64, not required, 1, positive; channels must be divisible."""

    @pytest.mark.parametrize("value", [0, -1])
    def test_range(self, operation, value):
        """DECISIONS, ranges: groups out of range must be refused, also if oneDNN treats them as 1."""
        refused(operation, ARGUMENTS, ValueError, groups=value)

    @pytest.mark.parametrize("value", [1.0, "1", [1], True], ids=repr)
    def test_type(self, operation, value):
        refused(operation, GRAPH_OP, TypeError, groups=value)

    def test_divide_the_channels(self, operation):
        refused(operation, SHAPE if operation.makes == "w" else ARGUMENTS, ValueError, groups=3)

    @pytest.mark.parametrize("name", ["OIX", "XIO"])
    def test_filter_layouts(self, name):
        """DECISIONS, filter layouts:

        CBD (O, I / g, X), CTBF (O / g, I, X), and their X-first forms must be accepted.
        """
        rng, g = np.random.default_rng(2), 2
        dy, x = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((2, 4, 3), (2, 6, 5)))
        w = rng.integers(-4, 5, (4, 3, 3)).astype(np.float32)  # the core's: (O, I / g, X)
        common = {
            "strides": [1],
            "pads_begin": [0],
            "pads_end": [0],
            "dilations": [1],
            "groups": g,
            "data_format": "NCX",
        }
        data = onednn.ConvolutionBackpropData(**common, filter_format=name, output_shape=x.shape)
        given = w if name == "OIX" else w.transpose(2, 1, 0)
        np.testing.assert_array_equal(data(dy, given), cg.conv_backward_data(dy, w, x.shape, groups=g))
        # Here x is the output's gradient, with its O = 6 channels, and dy the input with its I = 4 channels.
        shape = (3, 4, 3)
        filters = onednn.ConvTransposeBackpropFilters(**common, filter_format=name, filter_shape=shape)
        expected = cg.conv_transpose_backward_filter(dy, x, w.shape, groups=g)
        result = filters(dy, x)
        assert result.shape == shape
        axes = (1, 0, 2) if name == "OIX" else (2, 1, 0)
        np.testing.assert_array_equal(result.transpose(axes) if name == "OIX" else result.transpose(1, 2, 0), expected)


class TestFormatRows:
    """data_format: NXC (default), NCX. filter_format: XIO (default), OIX; in v3, XOI and IOX of ConvTranspose."""

    def test_default(self, operation):
        row = operation.schema["filter_format"]
        transposed = operation is onednn.ConvTransposeBackwardWeights
        assert (operation.schema["data_format"].default, row.default) == ("NXC", "XOI" if transposed else "XIO")
        assert list(row.choices) == (["XOI", "IOX"] if transposed else ["XIO", "OIX"])

    @pytest.mark.parametrize("value", ["NHWC", "ncx", "XNC", "OIHW"])
    def test_range(self, operation, value):
        refused(operation, GRAPH_OP, ValueError, data_format=value)
        refused(operation, GRAPH_OP, ValueError, **{operation.schema["filter_format"].name: value})

    def test_type(self, operation):
        refused(operation, GRAPH_OP, TypeError, data_format=1)
        refused(operation, GRAPH_OP, TypeError, **{operation.schema["filter_format"].name: ("XIO",)})


class TestShapeRow:
    """output_shape and filter_shape: an attribute or a third input, s32, which wins."""

    def test_missing(self, operation):
        refused(operation, SHAPE, ValueError, **{operation.shape: ...})

    def test_type(self, operation):
        refused(operation, GRAPH_OP, TypeError, **{operation.shape: 3})
        refused(operation, GRAPH_OP, TypeError, **{operation.shape: [2, 6, 7.0, 3]})

    @pytest.mark.parametrize("value", [(6, 7), (2, 6, 7), (2, 6, 7, 3, 1), (-2, 6, 7, 3)])
    def test_no_shape(self, operation, value):
        refused(operation, SHAPE, ValueError, **{operation.shape: value})

    def test_third_input(self, operation):
        """DECISIONS, third input: it must be accepted, and override the attribute."""
        _, inputs, shape = OPERATIONS[operation]
        tensor = np.array(shape, np.int32)
        for attribute in (..., [1] * 4, shape):
            result = call(operation, (*inputs, tensor), **{operation.shape: attribute})
            np.testing.assert_array_equal(result, call(operation))
        np.testing.assert_array_equal(call(operation, (*inputs, None)), call(operation))

    @pytest.mark.parametrize("convert", [list, lambda shape: np.array(shape, np.int64), lambda shape: np.ones(4)])
    def test_third_input_dtype(self, operation, convert):
        _, inputs, shape = OPERATIONS[operation]
        refused(operation, GRAPH_OP, TypeError, (*inputs, convert(shape)))

    def test_third_input_rank(self, operation):
        _, inputs, shape = OPERATIONS[operation]
        refused(operation, SHAPE, ValueError, (*inputs, np.array([shape], np.int32)))
        refused(operation, SHAPE, ValueError, (*inputs, np.array(shape[1:], np.int32)))
        refused(operation, SHAPE, ValueError, (*inputs, -np.array(shape, np.int32)))
