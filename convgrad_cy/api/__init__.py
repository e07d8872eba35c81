"""The functions with one result: check the arguments, run the kernel, return the result."""

from ..calls import call
from ..checks import functions
from .documentation import documented


@documented
def conv(
    x, w, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Convolution (cross-correlation) over one, two or three spatial axes.

    For each group, with ``t`` over the taps of the filter, and no term where the position is outside ``x``::

        y[n, o, p] = sum over i, t of  x[n, i, p * stride + t * dilation - pad_begin] * w[o, i, t]

    Parameters
    ----------
    x : array
        Input, of shape (N, C, *spatial).
    w : array
        Filter, of shape (O, C // groups, *kernel).
    {keywords}

    Returns
    -------
    array
        y, of shape (N, O, *output).

    {errors}

    Notes
    -----
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> x = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> w = np.array([[[-1, 0, 1]]], np.float32)
    >>> cg.conv(x, w, padding=1)
    array([[[ 2.,  3.,  5.,  7., -7.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV, x, w, (), keywords, out)


@documented
def conv_backward_data(
    dy, w, x_shape, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Gradient of `conv` with respect to its input.

    For each group::

        dx[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad_begin == q of  dy[n, o, p] * w[o, i, t]

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv`, of shape (N, O, *output).
    w : array
        Filter, of shape (O, C // groups, *kernel).
    x_shape : sequence of int
        Shape of the input of `conv`, with all axes, in `data_format`. Several input sizes can have the same
        output size, so it is needed.
    {keywords}

    Returns
    -------
    array
        dx, of shape `x_shape`. Elements that no output depends on are zero.

    {errors}

    Notes
    -----
    Also known as torch.nn.grad.conv2d_input, TensorFlow conv2d_backprop_input, oneDNN ConvolutionBackwardData and
    cuDNN dgrad.
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> dy = np.array([[[1, 10]]], np.float32)
    >>> w = np.array([[[1, 2, 3]]], np.float32)
    >>> cg.conv_backward_data(dy, w, (1, 1, 6), stride=2)
    array([[[ 1.,  2., 13., 20., 30.,  0.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV_BACKWARD_DATA, dy, w, (x_shape,), keywords, out)


@documented
def conv_backward_filter(
    x, dy, w_shape, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Gradient of `conv` with respect to its filter.

    For each group::

        dw[o, i, t] = sum over n, p of  x[n, i, p * stride + t * dilation - pad_begin] * dy[n, o, p]

    Parameters
    ----------
    x : array
        Input of `conv`, of shape (N, C, *spatial).
    dy : array
        Gradient with respect to the output of `conv`, of shape (N, O, *output).
    w_shape : sequence of int
        Shape of the filter with all axes, in `filter_format`: (O, C // groups, *kernel).
    {keywords}

    Returns
    -------
    array
        dw, of shape `w_shape`.

    {errors}

    Notes
    -----
    Also known as torch.nn.grad.conv2d_weight, TensorFlow conv2d_backprop_filter, oneDNN ConvolutionBackwardWeights and
    cuDNN wgrad.
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> x = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> dy = np.array([[[1, 0, 10]]], np.float32)
    >>> cg.conv_backward_filter(x, dy, (1, 1, 3))
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV_BACKWARD_FILTER, x, dy, (w_shape,), keywords, out)


@documented
def conv_transpose(
    x, w, *, stride=1, padding=0, output_padding=0, output_shape=None, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Transposed convolution: the data gradient of a convolution, used as a layer.

    For each group::

        y[n, o, q] = sum over i, p, t with p * stride + t * dilation - pad_begin == q of  x[n, i, p] * w[i, o, t]

    Parameters
    ----------
    x : array
        Input, of shape (N, C, *spatial).
    w : array
        Filter, of shape (C, O // groups, *kernel), like the filter of the convolution whose data gradient this is.
    output_padding : int or sequence of int, optional
        Number of elements added to the output at its end; less than max(stride, dilation).
    output_shape : sequence of int, optional
        Shape of the output with all axes, in `data_format`, instead of `output_padding`.
    {keywords}

    Returns
    -------
    array
        y, of shape (N, O, *output).

    {errors}

    Notes
    -----
    Also known as torch ConvTranspose and, in MATLAB, Keras and older texts, deconvolution.
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> x = np.array([[[1, 10]]], np.float32)
    >>> w = np.array([[[1, 2, 3]]], np.float32)
    >>> cg.conv_transpose(x, w, stride=2)
    array([[[ 1.,  2., 13., 20., 30.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV_TRANSPOSE, x, w, (output_padding, output_shape), keywords, out)


@documented
def conv_transpose_backward_data(
    dy, w, *, stride=1, padding=0, output_padding=None, output_shape=None, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Gradient of `conv_transpose` with respect to its input.

    For each group, with no term where the position is outside ``dy``::

        dx[n, i, p] = sum over o, t of  dy[n, o, p * stride + t * dilation - pad_begin] * w[i, o, t]

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv_transpose`, of shape (N, O, *output).
    w : array
        Filter, of shape (C, O // groups, *kernel).
    {output}
    {keywords}

    Returns
    -------
    array
        dx, of shape (N, C, *spatial).

    {errors}

    Notes
    -----
    This is `conv` of `dy` with the same filter. The exception is an `output_padding` of at least the stride, which
    needs a dilation greater than the stride. Then `output_padding` determines the extent of dx, and `output_shape`
    cannot.
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> dy = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> w = np.array([[[-1, 0, 1]]], np.float32)
    >>> cg.conv_transpose_backward_data(dy, w, stride=2)
    array([[[3., 7.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV_TRANSPOSE_BACKWARD_DATA, dy, w, (output_padding, output_shape), keywords, out)


@documented
def conv_transpose_backward_filter(
    x, dy, w_shape, *, stride=1, padding=0, output_padding=None, output_shape=None, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Gradient of `conv_transpose` with respect to its filter.

    For each group::

        dw[i, o, t] = sum over n, p of  x[n, i, p] * dy[n, o, p * stride + t * dilation - pad_begin]

    Parameters
    ----------
    x : array
        Input of `conv_transpose`, of shape (N, C, *spatial).
    dy : array
        Gradient with respect to the output of `conv_transpose`, of shape (N, O, *output).
    w_shape : sequence of int
        Shape of the filter with all axes, in `filter_format`: (C, O // groups, *kernel).
    {output}
    {keywords}

    Returns
    -------
    array
        dw, of shape `w_shape`.

    {errors}

    Notes
    -----
    Also known as oneDNN ConvTransposeBackwardWeights.
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> x = np.array([[[1, 10]]], np.float32)
    >>> dy = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> cg.conv_transpose_backward_filter(x, dy, (1, 1, 3), stride=2)
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV_TRANSPOSE_BACKWARD_FILTER, x, dy, (output_padding, output_shape, w_shape), keywords, out)
