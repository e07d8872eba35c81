"""Rules of oneDNN's documents and of the decisions on inputs, sizes and errors, and the classes."""

import doctest
import inspect
import pickle

import numpy as np
import pytest
from conformance import replay
from conformance.onednn_examples import (
    ARGUMENTS,
    FILTER,
    GEOMETRY,
    GRAPH_OP,
    OPERATIONS,
    SHAPE,
    X,
    Y,
    call,
    ones,
    refused,
)

import convgrad_cy as cg
from convgrad_cy.shims import onednn

pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")

ALL = [getattr(onednn, name) for name in onednn.__all__ if not name.startswith("Graph")]
parametrized = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)


def one_axis(operation, **attributes):
    common = {"strides": [1], "pads_begin": [0], "pads_end": [0], "dilations": [1]}
    return operation(**(common | attributes))


def data_gradient(n, k, p, **attributes):
    """ConvolutionBackpropData along one axis, of ones."""
    op = one_axis(onednn.ConvolutionBackpropData, output_shape=[1, n, 1], **attributes)
    return op(ones(1, p, 1), ones(k, 1, 1)).ravel()


class TestInputs:
    """Rules of T: f32, f16, bf16; one dtype for all; two tensors and the shape."""

    @parametrized
    @pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
    def test_dtypes(self, operation, dtype):
        inputs = [array.astype(replay.dtype_of(dtype)) for array in OPERATIONS[operation][1]]
        result = call(operation, inputs)
        assert result.dtype == replay.dtype_of(dtype)
        np.testing.assert_array_equal(result.astype(np.float32), call(operation))

    @parametrized
    @pytest.mark.parametrize("dtype", ["float64", "int32", "int8", "bool", "complex64", "object", "datetime64[s]"])
    def test_other_dtypes(self, operation, dtype):
        """DECISIONS, dtypes."""
        message = refused(operation, GRAPH_OP, TypeError, [array.astype(dtype) for array in OPERATIONS[operation][1]])
        assert "float32, float16, bfloat16" in message

    @parametrized
    def test_one_dtype(self, operation):
        first, second = OPERATIONS[operation][1]
        refused(operation, GRAPH_OP, TypeError, (first, second.astype(np.float16)))
        refused(operation, GRAPH_OP, TypeError, (first, second.astype(">f2")))

    @parametrized
    @pytest.mark.parametrize("value", [None, 1.0, [[1.0]], "a"], ids=repr)
    def test_tensors_are_arrays(self, operation, value):
        refused(operation, GRAPH_OP, TypeError, (OPERATIONS[operation][1][0], value))

    @parametrized
    def test_number_of_inputs(self, operation):
        first, second = OPERATIONS[operation][1]
        for inputs in ((), (first,), (first, second, None, None)):
            refused(operation, GRAPH_OP, TypeError, inputs)

    def test_no_shape_and_no_bias_for_the_others(self):
        op = one_axis(onednn.Convolution)
        with pytest.raises(onednn.GraphTypeError, match="the inputs must be src, weights, not 3 tensors"):
            op(ones(1, 3, 1), ones(1, 1, 1), ones(1))

    @parametrized
    def test_ranks(self, operation):
        first, second = OPERATIONS[operation][1]
        for inputs in ((first[0], second), (first, second[0]), (first[None], second), (first, second[None])):
            refused(operation, (SHAPE, ARGUMENTS), ValueError, inputs)

    @parametrized
    @pytest.mark.parametrize("rank, status", [(0, ARGUMENTS), (4, ARGUMENTS)])
    def test_one_to_three_axes(self, operation, rank, status):
        attributes = {name: [0 if "pads" in name else 1] * rank for name in GEOMETRY}
        inputs = (ones(*[1] * (rank + 2)),) * 2
        refused(operation, status, ValueError, inputs, **attributes, **{operation.shape: [1] * (rank + 2)})

    @parametrized
    @pytest.mark.parametrize("axis", range(4))
    @pytest.mark.parametrize("which", [0, 1])
    def test_shapes_agree(self, operation, which, axis):
        inputs = list(OPERATIONS[operation][1])
        inputs[which] = np.repeat(inputs[which], 4, axis)
        refused(operation, (ARGUMENTS, SHAPE), ValueError, inputs)

    @parametrized
    def test_layout_in_memory(self, operation):
        """Views of any strides must be accepted, and read-only ones."""
        rng = np.random.default_rng(3)
        inputs = [rng.integers(-4, 5, array.shape).astype(np.float32) for array in OPERATIONS[operation][1]]
        views = [np.asfortranarray(np.repeat(array, 2, 1))[:, ::2] for array in inputs]
        for view in views:
            view.flags.writeable = False
        np.testing.assert_array_equal(call(operation, views), call(operation, inputs))


class TestSizes:
    """DECISIONS, all shims."""

    def test_rounding_toward_zero(self):
        """n - k + pads = -1 with s = 2 must be one position, and -2 none."""
        np.testing.assert_array_equal(data_gradient(2, 3, 1, strides=[2]), [1, 1])
        np.testing.assert_array_equal(data_gradient(1, 3, 0, strides=[2]), [0])
        with pytest.raises(onednn.GraphValueError) as caught:
            data_gradient(1, 3, 1, strides=[2])
        assert caught.value.status == ARGUMENTS

    def test_leftovers_are_plus_zero(self):
        result = one_axis(onednn.ConvolutionBackpropData, strides=[3], output_shape=[1, 6, 1])(
            -ones(1, 2, 1), ones(1, 1, 1)
        )
        np.testing.assert_array_equal(result.ravel(), [-1, 0, 0, -1, 0, 0])
        assert not np.signbit(result.ravel()[[1, 2, 4, 5]]).any()

    def test_taps_between_which_nothing_lies(self):
        result = data_gradient(5, 2, 2, strides=[2], dilations=[2])
        np.testing.assert_array_equal(result, [1, 0, 2, 0, 1])

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, value):
        """NaN and infinity must spread through taps that exist, and not through padding."""
        dy = np.array([value, 0, 0], np.float32).reshape(1, 3, 1)
        op = one_axis(onednn.ConvolutionBackpropData, auto_pad="same_upper", output_shape=[1, 3, 1])
        np.testing.assert_array_equal(op(dy, ones(3, 1, 1)).ravel(), [value, value, 0])
        w = np.array([value, 1, 1], np.float32).reshape(3, 1, 1)
        np.testing.assert_array_equal(op(ones(1, 3, 1), w).ravel(), [value, value, 2])

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_rounded_once(self, dtype):
        """4096 products must be summed in float32."""
        dtype = replay.dtype_of(dtype)
        x, dy = (ones(1, 4096, 1, dtype=dtype) for _ in range(2))
        op = one_axis(onednn.ConvTransposeBackpropFilters, filter_shape=[1, 1, 1])
        assert op(x, dy).item() == 4096

    @parametrized
    def test_empty_batch(self, operation):
        """An empty batch must give an array of the right shape, with zeros if the batch is not in it."""
        inputs = [array[:0] if array.shape in (X, Y) else array for array in OPERATIONS[operation][1]]
        shape = OPERATIONS[operation][2]
        if operation.makes == "x":
            shape = (0, *shape[1:])
        result = call(operation, inputs, **{operation.shape: shape})
        assert result.shape == shape and not result.any()

    def test_empty_result(self):
        op = one_axis(onednn.ConvolutionBackpropData, output_shape=[1, 5, 0])
        assert op(ones(1, 3, 2), ones(3, 0, 2)).shape == (1, 5, 0)
        op = one_axis(onednn.ConvTransposeBackpropFilters, filter_shape=[3, 2, 0])
        assert op(ones(1, 3, 2), ones(1, 5, 0)).shape == (3, 2, 0)

    def test_shapes_of_an_empty_result_are_validated(self):
        op = one_axis(onednn.ConvolutionBackpropData, output_shape=[1, 5, 0])
        with pytest.raises(onednn.GraphValueError):
            op(ones(1, 4, 2), ones(3, 0, 2))
        with pytest.raises(onednn.GraphValueError):
            op(ones(1, 3, 2), ones(3, 1, 2))

    def test_empty_filter(self):
        op = one_axis(onednn.ConvolutionBackpropData, output_shape=[1, 5, 1])
        with pytest.raises(onednn.GraphValueError, match="filter must not be empty"):
            op(ones(1, 3, 0), ones(3, 1, 0))

    def test_enormous(self):
        """No size may end the process."""
        op = one_axis(onednn.ConvTranspose, strides=[2**61])
        with pytest.raises((onednn.GraphValueError, MemoryError)):
            op(ones(1, 9, 1), ones(3, 1, 1))


class TestErrors:
    """DECISIONS, errors."""

    def test_classes(self):
        assert issubclass(onednn.GraphTypeError, onednn.GraphError) and issubclass(onednn.GraphTypeError, TypeError)
        assert issubclass(onednn.GraphValueError, onednn.GraphError) and issubclass(onednn.GraphValueError, ValueError)

    def test_pickle(self):
        error = pickle.loads(pickle.dumps(onednn.GraphValueError("text", "invalid_shape")))
        assert (str(error), error.status) == ("text (invalid_shape)", "invalid_shape")

    @parametrized
    def test_unknown_attribute(self, operation):
        assert "alpha is no attribute; there are strides" in refused(operation, GRAPH_OP, TypeError, alpha=1)

    @parametrized
    def test_earliest_first(self, operation):
        """An attribute must be refused at construction, before there are tensors."""
        with pytest.raises(onednn.GraphTypeError):
            operation(**GEOMETRY | {"strides": None})


class TestClasses:
    @pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.__name__)
    def test_documentation_and_signature(self, operation):
        rows = operation.schema.values()
        assert list(inspect.signature(operation).parameters) == [row.name for row in rows]
        for row in rows:
            kind = {"s64[]": "sequence of int", "s64": "int", "string": "str"}[row.kind]
            default = f'"{row.default}"' if row.kind == "string" else row.default
            rest = "" if row.required else ", optional" if row.default is None else f", default {default}"
            assert f"\n{row.name} : {kind}{rest}\n" in inspect.getdoc(operation)
            if row.name.endswith("_format"):
                assert " or ".join(f'"{name}"' for name in row.choices) + "." in inspect.getdoc(operation)
        assert "Source: oneDNN" in operation.__doc__ and "{" not in operation.__doc__

    def test_examples(self):
        done = [doctest.testmod(module) for module in (onednn.convolution, onednn.transposed)]
        assert all(result.attempted > 0 and result.failed == 0 for result in done)

    def test_repr(self):
        op = one_axis(onednn.Convolution)
        assert repr(op) == "Convolution(strides=[1], pads_begin=[0], pads_end=[0], dilations=[1])"

    def test_pickle(self):
        op = pickle.loads(pickle.dumps(one_axis(onednn.Convolution)))
        assert op(ones(1, 3, 1), ones(2, 1, 1)).shape == (1, 2, 1)

    def test_many_shapes(self):
        """An operation must accept any shapes, and forget the plans of the oldest ones."""
        op = one_axis(onednn.Convolution, auto_pad="valid")
        for size in range(2, 600):
            assert op(ones(1, size, 1), ones(2, 1, 1)).shape == (1, size - 1, 1)

    def test_names_of_v3(self):
        """The operations of the documents and of v3 must be the same."""
        old, new = onednn.ConvolutionBackpropData, onednn.ConvolutionBackwardData
        np.testing.assert_array_equal(call(old), call(new))
        old, new = onednn.ConvTransposeBackpropFilters, onednn.ConvTransposeBackwardWeights
        np.testing.assert_array_equal(call(old).swapaxes(-1, -2), call(new))

    def test_is_the_core(self):
        w = np.moveaxis(ones(*FILTER), (0, 1, 2, 3), (2, 3, 1, 0))
        padding = list(zip(GEOMETRY["pads_begin"], GEOMETRY["pads_end"], strict=True))
        keywords = {"stride": (2, 1), "padding": padding, "dilation": (1, 2), "data_format": "NXC"}
        expected = cg.conv_backward_data(ones(*Y), w, X, **keywords)
        np.testing.assert_array_equal(call(onednn.ConvolutionBackpropData), expected)
