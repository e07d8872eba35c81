"""oneDNN Graph's convolution and its gradients."""

from .attributes import CONVOLUTION, schema
from .operations import Operation


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

    An operation is called with `output_delta` of shape ``(N, *p, O)``, with `filter` of shape ``(*k, I / groups, O)``,
    and optionally with `output_shape`, an int32 array ``(N, *q, I)``, which overrides the attribute of that name. These
    shapes are in the default formats. All are of one dtype: float32, float16 or bfloat16. The call returns
    `input_delta`.

    Parameters
    ----------
    strides : sequence of int
        Steps along each spatial axis; positive.
    pads_begin : sequence of int
        Zeros before each spatial axis; under `auto_pad` ignored and optional.
    pads_end : sequence of int
        Zeros after each spatial axis; under `auto_pad` ignored and optional.
    dilations : sequence of int
        Distance of two taps along each spatial axis; positive.
    auto_pad : str, default "none"
        Replaces the pads. "valid": no padding. "same_upper" and "same_lower": output and input differ by the strides
        only; the extra element of an odd total is at the end or at the beginning. oneDNN v3's spellings work, too.
    groups : int, default 1
        Number of groups of channels; positive.
    data_format : str, default "NXC"
        "NXC" or "NCX".
    filter_format : str, default "XIO"
        "XIO" or "OIX".
    output_padding : sequence of int, optional
        Elements that are added to the larger of the two images at its end.
    output_shape : sequence of int, optional
        The whole shape of the result; or else it is the third input.

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


class Convolution(
    Operation,
    takes={"x": "src", "w": "weights"},
    makes="y",
    schema=schema("weights_format", CONVOLUTION),
):
    """Convolution without a bias.

    An operation is called with `src` of shape ``(N, *q, I)`` and `weights` of shape ``(*k, I / groups, O)``. The call
    returns `dst` of shape ``(N, *p, O)``.

    ``dst[n, o, p] = sum of src[n, i, q] * weights[o, i, k]`` over i and k, with ``q`` equal to
    ``p * strides + k * dilations - pads_begin``. Dtypes and errors are the same as for `ConvolutionBackpropData`, but
    channels that do not agree and an input that is too small are `invalid_shape`.

    Parameters
    ----------
    strides : sequence of int
        Steps along each spatial axis; positive.
    pads_begin : sequence of int
        Zeros before each spatial axis; under `auto_pad` ignored and optional.
    pads_end : sequence of int
        Zeros after each spatial axis; under `auto_pad` ignored and optional.
    dilations : sequence of int
        Distance of two taps along each spatial axis; positive.
    auto_pad : str, default "none"
        Replaces the pads. "valid": no padding. "same_upper" and "same_lower": output and input differ by the strides
        only; the extra element of an odd total is at the end or at the beginning. oneDNN v3's spellings work, too.
    groups : int, default 1
        Number of groups of channels; positive.
    data_format : str, default "NXC"
        "NXC" or "NCX".
    weights_format : str, default "XIO"
        "XIO" or "OIX".

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
    strides : sequence of int
        Steps along each spatial axis; positive.
    pads_begin : sequence of int
        Zeros before each spatial axis; under `auto_pad` ignored and optional.
    pads_end : sequence of int
        Zeros after each spatial axis; under `auto_pad` ignored and optional.
    dilations : sequence of int
        Distance of two taps along each spatial axis; positive.
    auto_pad : str, default "none"
        Replaces the pads. "valid": no padding. "same_upper" and "same_lower": output and input differ by the strides
        only; the extra element of an odd total is at the end or at the beginning. oneDNN v3's spellings work, too.
    groups : int, default 1
        Number of groups of channels; positive.
    data_format : str, default "NXC"
        "NXC" or "NCX".
    weights_format : str, default "XIO"
        "XIO" or "OIX".
    output_padding : sequence of int, optional
        Elements that are added to the larger of the two images at its end.
    dst_shape : sequence of int, optional
        The whole shape of the result; or else it is the third input.

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
    strides : sequence of int
        Steps along each spatial axis; positive.
    pads_begin : sequence of int
        Zeros before each spatial axis; under `auto_pad` ignored and optional.
    pads_end : sequence of int
        Zeros after each spatial axis; under `auto_pad` ignored and optional.
    dilations : sequence of int
        Distance of two taps along each spatial axis; positive.
    auto_pad : str, default "none"
        Replaces the pads. "valid": no padding. "same_upper" and "same_lower": output and input differ by the strides
        only; the extra element of an odd total is at the end or at the beginning. oneDNN v3's spellings work, too.
    groups : int, default 1
        Number of groups of channels; positive.
    data_format : str, default "NXC"
        "NXC" or "NCX".
    weights_format : str, default "XIO"
        "XIO" or "OIX".
    weights_shape : sequence of int, optional
        The whole shape of the result; or else it is the third input.

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """
