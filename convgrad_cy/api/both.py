"""Functions that return both gradients of a convolution. On a GPU both share one plan."""

from ..calls import call_several
from ..checks import functions


def _pair(out):
    """Return the arrays that receive dx and dw; None stands for a new array."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"out must be a pair of arrays, not {type(out).__name__}")
    if len(out) != 2:
        raise ValueError(f"out must have two entries, for dx and dw, not {len(out)}")
    return out


def conv_backward(
    dy, x, w, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Both gradients of `conv`, with respect to its input and to its filter.

    For each group, with no term where the position is outside ``x``::

        dx[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad_begin == q of  dy[n, o, p] * w[o, i, t]
        dw[o, i, t] = sum over n, p of  x[n, i, p * stride + t * dilation - pad_begin] * dy[n, o, p]

    The results have the bits of `conv_backward_data` and `conv_backward_filter`. On a GPU, `dy` is brought into the
    kernels' layout once for both.

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``.
    x : array
        Input of `conv`, of shape ``(N, C, *spatial)``.
    w : array
        Filter, of shape ``(O, C // groups, *kernel)``.
    stride : int or sequence of int, default 1
        One value, or one for each spatial axis; at least 1. A sequence has a length and is indexed: a tuple, a list, a
        range, an array of one axis, the shape type of another library.
    padding : int, sequence or str, default 0
        One int, or for each spatial axis one int or one (begin, end) pair, such as ((2, 0),) for a causal 1-D
        convolution. "valid": no padding. "same" or "same_upper": the output's extent is ceil(input / stride), and an
        odd element of padding is at the end. "same_lower": an odd element is at the beginning. Names may be in any
        case.
    dilation : int or sequence of int, default 1
        Distance between two taps of the filter: one value, or one for each spatial axis, as for `stride`; at least 1.
    groups : int, default 1
        Number of independent convolutions, each with an equal share of the channels.
    data_format : str, default "NCX"
        "NCX" (the shapes given here), "NXC" (channels last), or the spelling for a number of axes, such as "NHWC"; in
        any case.
    filter_format : str, default "OIX"
        "OIX" (the shapes given here), "XIO" (spatial axes first, output channels last), or the spelling for a number of
        axes, such as "HWIO"; in any case.
    algorithm : str, optional
        "auto": the algorithm with the lowest predicted time. In float32, float16 and bfloat16 this may be Winograd's.
        The error of every element is then at most 2e-5 times the largest magnitude in the result, so small elements can
        lose all digits, and subnormal bfloat16 may count as zero. float64 and int32 are always computed directly.
        "direct": each element is the sum of its own products, and an item has the same bits alone and in a batch.
        "winograd": Winograd's algorithm, on a CPU only.
        The default is the setting of `set_default_algorithm`, which is "auto" at first.
    precision : str, default "high"
        Products of float32 on a GPU. "ieee": float32 products. "high": bfloat16 products that are as exact together.
        "medium": fewer bfloat16 products, exact to 1e-5 of the result's largest element. A CPU always computes "ieee".
    out : tuple or list of array, optional
        A pair that receives dx and dw. An entry of None stands for a new array. An array has the result's shape and
        dtype, and shares no memory with the inputs or the other result. jax.Array is immutable, so it is not accepted.

    Returns
    -------
    dx : array
        Gradient with respect to `x`, of the shape of `x`.
    dw : array
        Gradient with respect to `w`, of the shape of `w`.

    Raises
    ------
    TypeError
        An argument has the wrong type, an array has an unsupported dtype, or arrays differ in dtype or device.
    ValueError
        A shape, size or keyword is impossible, or `out` cannot be written.
    MemoryError
        There is too little memory. On a CPU the message names the function and the result's shape and dtype. `out` is
        unchanged after this and the two errors above.
    Exception
        An exception of a signal handler, such as KeyboardInterrupt. A call of Python's main thread handles signals ten
        times a second. The content of `out` is undefined afterwards.

    See Also
    --------
    conv : Convolution.
    conv_backward_data : Gradient of `conv` with respect to its input.
    conv_backward_filter : Gradient of `conv` with respect to its filter.

    Notes
    -----
    Also known as aten convolution_backward.

    All arrays are numpy.ndarray, or torch.Tensor, or jax.Array on a CPU, or cupy.ndarray on one GPU, and the result has
    the same type. No gradients are recorded. All arrays have one dtype: float16, bfloat16 (of ml_dtypes in
    numpy.ndarray), float32, float64 or int32. Inputs may have any byte order; `out` and results have the machine's.
    float16 and bfloat16 are summed in float32 and rounded once. int32 wraps. The same inputs give the same bits for any
    number of threads.

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


def conv_transpose_backward(
    dy, x, w, *, stride=1, padding=0, output_padding=None, output_shape=None, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Both gradients of `conv_transpose`, with respect to its input and to its filter.

    For each group, with no term where the position is outside ``dy``::

        dx[n, i, p] = sum over o, t of  dy[n, o, p * stride + t * dilation - pad_begin] * w[i, o, t]
        dw[i, o, t] = sum over n, p of  x[n, i, p] * dy[n, o, p * stride + t * dilation - pad_begin]

    The results have the bits of `conv_transpose_backward_data` and `conv_transpose_backward_filter`. On a GPU, `dy` is
    brought into the kernels' layout once for both.

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv_transpose`, of shape ``(N, O, *output)``.
    x : array
        Input of `conv_transpose`, of shape ``(N, C, *spatial)``.
    w : array
        Filter, of shape ``(C, O // groups, *kernel)``.
    stride : int or sequence of int, default 1
        One value, or one for each spatial axis; at least 1. A sequence has a length and is indexed: a tuple, a list, a
        range, an array of one axis, the shape type of another library.
    padding : int, sequence or str, default 0
        Number of elements that are cut off the output: one int, or for each spatial axis one int or one (begin, end)
        pair, such as ((2, 0),). "valid": none. "same" or "same_upper": the output's extent is input * stride, and an
        odd element is cut off at the end. "same_lower": an odd element is cut off at the beginning. Names may be in any
        case.
    output_padding : int or sequence of int, optional
        The keyword of `conv_transpose`. `dy` must have the resulting shape. By default the shapes decide.
    output_shape : sequence of int, optional
        The keyword of `conv_transpose`: the shape of `dy`.
    dilation : int or sequence of int, default 1
        Distance between two taps of the filter: one value, or one for each spatial axis, as for `stride`; at least 1.
    groups : int, default 1
        Number of independent convolutions, each with an equal share of the channels.
    data_format : str, default "NCX"
        "NCX" (the shapes given here), "NXC" (channels last), or the spelling for a number of axes, such as "NHWC"; in
        any case.
    filter_format : str, default "OIX"
        "OIX" (the shapes given here), "XIO" (spatial axes first, output channels last), or the spelling for a number of
        axes, such as "HWIO"; in any case.
    algorithm : str, optional
        "auto": the algorithm with the lowest predicted time. In float32, float16 and bfloat16 this may be Winograd's.
        The error of every element is then at most 2e-5 times the largest magnitude in the result, so small elements can
        lose all digits, and subnormal bfloat16 may count as zero. float64 and int32 are always computed directly.
        "direct": each element is the sum of its own products, and an item has the same bits alone and in a batch.
        "winograd": Winograd's algorithm, on a CPU only.
        The default is the setting of `set_default_algorithm`, which is "auto" at first.
    precision : str, default "high"
        Products of float32 on a GPU. "ieee": float32 products. "high": bfloat16 products that are as exact together.
        "medium": fewer bfloat16 products, exact to 1e-5 of the result's largest element. A CPU always computes "ieee".
    out : tuple or list of array, optional
        A pair that receives dx and dw. An entry of None stands for a new array. An array has the result's shape and
        dtype, and shares no memory with the inputs or the other result. jax.Array is immutable, so it is not accepted.

    Returns
    -------
    dx : array
        Gradient with respect to `x`, of the shape of `x`.
    dw : array
        Gradient with respect to `w`, of the shape of `w`.

    Raises
    ------
    TypeError
        An argument has the wrong type, an array has an unsupported dtype, or arrays differ in dtype or device.
    ValueError
        A shape, size or keyword is impossible, or `out` cannot be written.
    MemoryError
        There is too little memory. On a CPU the message names the function and the result's shape and dtype. `out` is
        unchanged after this and the two errors above.
    Exception
        An exception of a signal handler, such as KeyboardInterrupt. A call of Python's main thread handles signals ten
        times a second. The content of `out` is undefined afterwards.

    See Also
    --------
    conv_transpose : Transposed convolution.
    conv_transpose_backward_data : Gradient of `conv_transpose` with respect to its input.
    conv_transpose_backward_filter : Gradient of `conv_transpose` with respect to its filter.

    Notes
    -----
    Also known as aten convolution_backward with transposed=True.

    All arrays are numpy.ndarray, or torch.Tensor, or jax.Array on a CPU, or cupy.ndarray on one GPU, and the result has
    the same type. No gradients are recorded. All arrays have one dtype: float16, bfloat16 (of ml_dtypes in
    numpy.ndarray), float32, float64 or int32. Inputs may have any byte order; `out` and results have the machine's.
    float16 and bfloat16 are summed in float32 and rounded once. int32 wraps. The same inputs give the same bits for any
    number of threads.

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
