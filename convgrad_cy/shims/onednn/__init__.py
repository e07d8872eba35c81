"""oneDNN Graph's convolutions and their gradients on NumPy arrays.

An operation is constructed with its attributes, by name, and called with its tensors, by position. Attributes,
defaults, layouts and statuses follow oneDNN; ``docs/golden-model.md`` lists the differences. The two first operations
have names of oneDNN Graph 0.7, the others have names of oneDNN v3.
"""

from .attributes import CONVOLUTION, TRANSPOSED, TRANSPOSED_V1, GraphError, GraphTypeError, GraphValueError, schema
from .operations import Operation

__all__ = [
    "ConvTranspose",
    "ConvTransposeBackpropFilters",
    "ConvTransposeBackwardData",
    "ConvTransposeBackwardWeights",
    "Convolution",
    "ConvolutionBackpropData",
    "ConvolutionBackwardData",
    "ConvolutionBackwardWeights",
    "GraphError",
    "GraphTypeError",
    "GraphValueError",
]


def __dir__():
    return __all__


class ConvolutionBackpropData(
    Operation,
    takes={"y": "output_delta", "w": "filter"},
    makes="x",
    schema=schema("filter_format", CONVOLUTION, shape="output_shape", output_padding=True),
):
    """Gradient of a convolution with respect to its input.

    For each group, with ``p`` over the positions of `output_delta` and ``k`` over the taps of `filter`::

        input_delta[n, i, q] = sum of  output_delta[n, o, p] * filter[o, i, k]
            over o, p, k with p * strides + k * dilations - pads_begin == q

    An operation is called with `output_delta` of shape (N, *p, O), with `filter` of shape (*k, I / groups, O), and
    optionally with `output_shape`, an int32 array (N, *q, I), which overrides the attribute of that name. These shapes
    are in the default formats. All are of one dtype: float32, float16 or bfloat16. The call returns `input_delta`.

    Parameters
    ----------
    {attributes}

    Raises
    ------
    GraphTypeError
        `invalid_graph_op`: an attribute that is missing, unknown or of the wrong type; a wrong number of inputs, or
        their dtype.
    GraphValueError
        `invalid_graph_op`: a string, or a pad, out of its range. `invalid_shape`: attributes of the wrong length, an
        `output_shape` that is missing or no shape. `invalid_arguments`: any other value out of its range; extents,
        channels or batches that do not agree: (q - (k - 1) * dilations - 1 + pads) / strides + 1, rounded toward
        zero, must be p.

    Notes
    -----
    Source: oneDNN's ConvolutionBackpropData-1.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad_cy.shims import onednn
    >>> output_delta = np.array([[[1, 10]]], np.float32)
    >>> filter = np.array([[[1, 2, 3]]], np.float32)
    >>> op = onednn.ConvolutionBackpropData(
    ...     strides=[2], pads_begin=[0], pads_end=[0], dilations=[1],
    ...     data_format="NCX", filter_format="OIX", output_shape=[1, 1, 6])
    >>> op(output_delta, filter)
    array([[[ 1.,  2., 13., 20., 30.,  0.]]], dtype=float32)
    """


class ConvTransposeBackpropFilters(
    Operation,
    takes={"y": "input_forward", "x": "output_delta"},
    makes="w",
    schema=schema("filter_format", TRANSPOSED_V1, shape="filter_shape", output_padding=True),
):
    """Gradient of a transposed convolution with respect to its filter.

    For each group, with ``p`` over the positions of `input_forward`, and no term outside `output_delta`::

        filter_delta[o, i, k] = sum of  input_forward[n, i, p] * output_delta[n, o, q]
            over n, p, with q = p * strides + k * dilations - pads_begin

    An operation is called with `input_forward` of shape (N, *p, I), with `output_delta` of shape (N, *q, O), and
    optionally with `filter_shape`, an int32 array (*k, I, O / groups), which overrides the attribute of that name.
    These shapes are in the default formats. All are of one dtype: float32, float16 or bfloat16. The call returns
    `filter_delta`. ``o`` counts the channels of the output in the group of ``i``.

    Parameters
    ----------
    {attributes}

    Raises
    ------
    GraphTypeError
        `invalid_graph_op`: an attribute that is missing, unknown or of the wrong type; a wrong number of inputs, or
        their dtype.
    GraphValueError
        `invalid_graph_op`: a string, or a pad, out of its range. `invalid_shape`: attributes of the wrong length, a
        `filter_shape` that is missing or no shape, or whose I is no multiple of groups. `invalid_arguments`: any
        other value out of its range; extents, channels or batches that do not agree.

    Notes
    -----
    Source: oneDNN's ConvTransposeBackpropFilters-1.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad_cy.shims import onednn
    >>> input_forward = np.array([[[1, 10]]], np.float32)
    >>> output_delta = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> op = onednn.ConvTransposeBackpropFilters(
    ...     strides=[2], pads_begin=[0], pads_end=[0], dilations=[1],
    ...     data_format="NCX", filter_format="OIX", filter_shape=[1, 1, 3])
    >>> op(input_forward, output_delta)
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """


class Convolution(
    Operation,
    takes={"x": "src", "w": "weights"},
    makes="y",
    schema=schema("weights_format", CONVOLUTION),
):
    """Convolution: `src` (N, *q, I) and `weights` (*k, I / groups, O) to `dst` (N, *p, O). There is no bias.

    ``dst[n, o, p] = sum of src[n, i, q] * weights[o, i, k]`` over i and k, with ``q`` equal to
    ``p * strides + k * dilations - pads_begin``. Dtypes and errors are the same as for `ConvolutionBackpropData`, but
    channels that do not agree and an input that is too small are `invalid_shape`.

    Parameters
    ----------
    {attributes}

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """


class ConvolutionBackwardData(
    Operation,
    takes={"y": "diff_dst", "w": "weights"},
    makes="x",
    schema=schema("weights_format", CONVOLUTION, shape="dst_shape", output_padding=True),
):
    """`ConvolutionBackpropData` with the names of v3: `diff_dst`, `weights` and `dst_shape` to `diff_src`.

    Parameters
    ----------
    {attributes}

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """


class ConvolutionBackwardWeights(
    Operation,
    takes={"x": "src", "y": "diff_dst"},
    makes="w",
    schema=schema("weights_format", CONVOLUTION, shape="weights_shape"),
):
    """Gradient of `Convolution` with respect to its weights: `src`, `diff_dst` and `weights_shape` to `diff_weights`.

    ``diff_weights[o, i, k] = sum of src[n, i, q] * diff_dst[n, o, p]`` over n and p, with ``q`` equal to
    ``p * strides + k * dilations - pads_begin``. Dtypes and errors are the same as for `ConvolutionBackpropData`.

    Parameters
    ----------
    {attributes}

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """


class ConvTranspose(
    Operation,
    takes={"y": "src", "w": "weights"},
    makes="x",
    schema=schema("weights_format", TRANSPOSED, output_padding=True),
):
    """Transposed convolution: `src` (N, *p, I) and `weights` (*k, O / groups, I) to `dst` (N, *q, O). There is no bias.

    The extents of `dst` are (p - 1) * strides + (k - 1) * dilations + 1 - pads + output_padding, where output_padding
    is less than strides. Values, dtypes and errors are the same as for `ConvolutionBackpropData`.

    Parameters
    ----------
    {attributes}

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """


class ConvTransposeBackwardData(
    Operation,
    takes={"x": "diff_dst", "w": "weights"},
    makes="y",
    schema=schema("weights_format", TRANSPOSED),
):
    """Gradient of `ConvTranspose` with respect to its input: `diff_dst` and `weights` to `diff_src`.

    This is `Convolution` with the filter formats of `ConvTranspose`.

    Parameters
    ----------
    {attributes}

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """


class ConvTransposeBackwardWeights(
    Operation,
    takes={"y": "src", "x": "diff_dst"},
    makes="w",
    schema=schema("weights_format", TRANSPOSED, shape="weights_shape", output_padding=True),
):
    """`ConvTransposeBackpropFilters` with the names of v3: `src`, `diff_dst` and `weights_shape` to `diff_weights`.

    The weights have the formats of `ConvTranspose`.

    Parameters
    ----------
    {attributes}

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """
