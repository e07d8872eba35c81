"""Functions that return both gradients of a convolution. On a GPU both share one plan."""

from ..calls import call_several
from ..checks import functions
from .documentation import documented


def _pair(out):
    """Return the arrays that receive dx and dw; None stands for a new array."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"out must be a pair of arrays, not {type(out).__name__}")
    if len(out) != 2:
        raise ValueError(f"out must have two entries, for dx and dw, not {len(out)}")
    return out


@documented
def conv_backward(
    dy, x, w, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Both gradients of `conv`, with respect to its input and to its filter.

    The results have the bits of `conv_backward_data` and `conv_backward_filter`. On a GPU, `dy` is brought into the
    kernels' layout once for both.

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv`, of shape (N, O, *output).
    x : array
        Input of `conv`, of shape (N, C, *spatial).
    w : array
        Filter, of shape (O, C // groups, *kernel).
    {keywords}

    Returns
    -------
    tuple of array
        dx, of the shape of `x`, and dw, of the shape of `w`.

    {errors}

    Notes
    -----
    Also known as aten convolution_backward.
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> x = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> w = np.array([[[-1, 0, 1]]], np.float32)
    >>> dy = np.array([[[1, 0, 10]]], np.float32)
    >>> dx, dw = cg.conv_backward(dy, x, w)
    >>> dx
    array([[[-1.,  0., -9.,  0., 10.]]], dtype=float32)
    >>> dw
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return tuple(call_several(functions.CONV_BACKWARD, (dy, x, w), (), keywords, _pair(out)))


@documented
def conv_transpose_backward(
    dy, x, w, *, stride=1, padding=0, output_padding=None, output_shape=None, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Both gradients of `conv_transpose`, with respect to its input and to its filter.

    The results have the bits of `conv_transpose_backward_data` and `conv_transpose_backward_filter`. On a
    GPU, `dy` is brought into the kernels' layout once for both.

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv_transpose`, of shape (N, O, *output).
    x : array
        Input of `conv_transpose`, of shape (N, C, *spatial).
    w : array
        Filter, of shape (C, O // groups, *kernel).
    {output}
    {keywords}

    Returns
    -------
    tuple of array
        dx, of the shape of `x`, and dw, of the shape of `w`.

    {errors}

    Notes
    -----
    Also known as aten convolution_backward with transposed=True.
    {dtypes}

    Examples
    --------
    >>> import numpy as np
    >>> import convgrad_cy as cg
    >>> x = np.array([[[1, 10]]], np.float32)
    >>> w = np.array([[[-1, 0, 1]]], np.float32)
    >>> dy = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> dx, dw = cg.conv_transpose_backward(dy, x, w, stride=2)
    >>> dx
    array([[[3., 7.]]], dtype=float32)
    >>> dw
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    asked = (output_padding, output_shape)
    return tuple(call_several(functions.CONV_TRANSPOSE_BACKWARD, (dy, x, w), asked, keywords, _pair(out)))
