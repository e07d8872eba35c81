"""oneDNN Graph's transposed convolution and its gradients."""

from .attributes import TRANSPOSED, TRANSPOSED_V1, schema
from .operations import Operation


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

    An operation is called with `input_forward` of shape ``(N, *p, I)``, with `output_delta` of shape ``(N, *q, O)``,
    and optionally with `filter_shape`, an int32 array ``(*k, I, O / groups)``, which overrides the attribute of that
    name. These shapes are in the default formats. All are of one dtype: float32, float16 or bfloat16. The call returns
    `filter_delta`. ``o`` counts the channels of the output in the group of ``i``.

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
    filter_shape : sequence of int, optional
        The whole shape of the result; or else it is the third input.

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


class ConvTranspose(
    Operation,
    takes={"y": "src", "w": "weights"},
    makes="x",
    schema=schema("weights_format", TRANSPOSED, output_padding=True),
):
    """Transposed convolution without a bias.

    An operation is called with `src` of shape ``(N, *p, I)`` and `weights` of shape ``(*k, O / groups, I)``. The call
    returns `dst` of shape ``(N, *q, O)``.

    The extents of `dst` are (p - 1) * strides + (k - 1) * dilations + 1 - pads + output_padding, where output_padding
    is less than strides. Values, dtypes and errors are the same as for `ConvolutionBackpropData`.

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
    weights_format : str, default "XOI"
        "XOI" or "IOX".
    output_padding : sequence of int, optional
        Elements that are added to the larger of the two images at its end.

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
    weights_format : str, default "XOI"
        "XOI" or "IOX".

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
    weights_format : str, default "XOI"
        "XOI" or "IOX".
    output_padding : sequence of int, optional
        Elements that are added to the larger of the two images at its end.
    weights_shape : sequence of int, optional
        The whole shape of the result; or else it is the third input.

    Notes
    -----
    Source: oneDNN v3's operation of that name.
    """
