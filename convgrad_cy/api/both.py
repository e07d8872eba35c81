"""Functions that return both gradients of a convolution. On a GPU, one plan computes both."""

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

    For each group, with item n, input channel i, output channel o, positions p and q and tap t::

        dx[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad_begin == q of  dy[n, o, p] * w[o, i, t]
        dw[o, i, t] = sum over n, p of  x[n, i, p * stride + t * dilation - pad_begin] * dy[n, o, p]

    Terms whose index into ``x`` is out of range are omitted (zero padding).

    `conv_backward_data` and `conv_backward_filter` give the same results, bit for bit. On a GPU, `dy` is brought into
    the kernels' layout once for both.

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``.
    x : array
        Input of `conv`, of shape ``(N, C, *spatial)``.
    w : array
        Filter, of shape ``(O, C // groups, *kernel)``.
    stride : int or sequence of int, default 1
        One int, or one for each spatial axis; at least 1. A sequence may be a tuple, a list, a range or a 1-D array.
    padding : int, sequence or str, default 0
        One int, or for each spatial axis one int or one (begin, end) pair, such as ((2, 0),) for a causal 1-D
        convolution. "valid": no padding. "same" or "same_upper": the output size is ceil(input size / stride). If the
        total padding is odd, the extra element is at the end. "same_lower": it is at the beginning. Case is ignored.
    dilation : int or sequence of int, default 1
        Distance between neighbouring taps of the filter: one int, or one for each spatial axis; at least 1.
    groups : int, default 1
        Number of independent convolutions, each with an equal share of the channels.
    data_format : str, default "NCX"
        "NCX": channels first, as in the shapes given here. "NXC": channels last. Names with spatial letters, such as
        "NHWC", also work. Case is ignored.
    filter_format : str, default "OIX"
        "OIX": the axes in the order given here. "XIO": the spatial axes, then I, then O. Names with spatial letters,
        such as "HWIO", also work. Case is ignored. For a transposed convolution, O stands for its input channels, I for
        its output channels.
    algorithm : str, optional
        "auto": the algorithm with the lowest predicted time. In float32, float16 and bfloat16 this may be Winograd's.
        Before an element is rounded to its dtype, its error is then at most 2e-5 times the largest magnitude in the
        result; if all sums cancel, 2e-5 times the largest sum of absolute products. So small elements can lose all
        digits. Subnormal bfloat16 may count as zero.
        "direct": the error of an element depends on its own products only. Except in filter gradients, an item has the
        same bits alone and in any batch.
        "winograd": Winograd's algorithm, on a CPU only. A ValueError is raised if it does not support the call.
        The default is the setting of `set_default_algorithm`, which is "auto" at first.
    precision : str, default "high"
        Affects float32 on a GPU only. "ieee": float32 products. "high": sums of six bfloat16 products, as accurate as
        "ieee". "medium": sums of three bfloat16 products, with errors of at most 1e-5 times the result's largest
        magnitude.
    out : tuple or list of array, optional
        A pair that receives dx and dw. An entry of None stands for a new array. An array must have its result's shape,
        dtype and device, and share no memory with the inputs or the other array. It cannot be a jax.Array, which is
        immutable.

    Returns
    -------
    dx : array
        Gradient with respect to `x`, of the shape of `x`.
    dw : array
        Gradient with respect to `w`, of the shape of `w`.

    Raises
    ------
    TypeError
        An argument has the wrong type, an array has an unsupported dtype, or arrays differ in type, dtype or device.
    ValueError
        Shapes do not agree, a keyword's value is not allowed, or `out` cannot be written.
    MemoryError
        There is too little memory. On a CPU the message names the function and the result's shape and dtype. `out` is
        unchanged after this and the two errors above.
    BaseException
        Raised by a signal handler, such as KeyboardInterrupt. During a call in Python's main thread, handlers run about
        ten times a second. After the exception, `out` has undefined content.

    See Also
    --------
    conv : Convolution.
    conv_backward_data : Gradient of `conv` with respect to its input.
    conv_backward_filter : Gradient of `conv` with respect to its filter.

    Notes
    -----
    Also known as aten convolution_backward.

    The arrays of a call are all numpy.ndarray, all torch.Tensor, all jax.Array (on a CPU) or all cupy.ndarray, and so
    is the result. They are on one device. Automatic differentiation does not record the call. All arrays have one
    dtype: float16, bfloat16 (of ml_dtypes in numpy.ndarray), float32, float64 or int32. Inputs may have any byte order;
    `out` and results have the machine's. float16 and bfloat16 are summed in float32 and then rounded once. int32 wraps.
    On one model of processor, with the same settings, the same inputs give the same bits for any number of threads.

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

    For each group, with item n, input channel i, output channel o, position p and tap t::

        dx[n, i, p] = sum over o, t of  dy[n, o, p * stride + t * dilation - pad_begin] * w[i, o, t]
        dw[i, o, t] = sum over n, p of  x[n, i, p] * dy[n, o, p * stride + t * dilation - pad_begin]

    Terms whose index into ``dy`` is out of range are omitted (zero padding).

    `conv_transpose_backward_data` and `conv_transpose_backward_filter` give the same results, bit for bit. On a GPU,
    `dy` is brought into the kernels' layout once for both.

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv_transpose`, of shape ``(N, O, *output)``.
    x : array
        Input of `conv_transpose`, of shape ``(N, C, *spatial)``.
    w : array
        Filter, of shape ``(C, O // groups, *kernel)``.
    stride : int or sequence of int, default 1
        One int, or one for each spatial axis; at least 1. A sequence may be a tuple, a list, a range or a 1-D array.
    padding : int, sequence or str, default 0
        Elements removed from the output: one int, or for each spatial axis one int or one (begin, end) pair, such as
        ((2, 0),). "valid": none. "same" or "same_upper": the output size is input size * stride, unless `output_shape`
        is given. If an odd number is removed, the extra element is at the end. "same_lower": it is at the beginning.
        Case is ignored.
    output_padding : int or sequence of int, optional
        The `output_padding` given to `conv_transpose`; `dy` must have the resulting shape. None: this is not checked.
    output_shape : sequence of int, optional
        The `output_shape` given to `conv_transpose`: the shape of `dy`.
    dilation : int or sequence of int, default 1
        Distance between neighbouring taps of the filter: one int, or one for each spatial axis; at least 1.
    groups : int, default 1
        Number of independent convolutions, each with an equal share of the channels.
    data_format : str, default "NCX"
        "NCX": channels first, as in the shapes given here. "NXC": channels last. Names with spatial letters, such as
        "NHWC", also work. Case is ignored.
    filter_format : str, default "OIX"
        "OIX": the axes in the order given here. "XIO": the spatial axes, then I, then O. Names with spatial letters,
        such as "HWIO", also work. Case is ignored. For a transposed convolution, O stands for its input channels, I for
        its output channels.
    algorithm : str, optional
        "auto": the algorithm with the lowest predicted time. In float32, float16 and bfloat16 this may be Winograd's.
        Before an element is rounded to its dtype, its error is then at most 2e-5 times the largest magnitude in the
        result; if all sums cancel, 2e-5 times the largest sum of absolute products. So small elements can lose all
        digits. Subnormal bfloat16 may count as zero.
        "direct": the error of an element depends on its own products only. Except in filter gradients, an item has the
        same bits alone and in any batch.
        "winograd": Winograd's algorithm, on a CPU only. A ValueError is raised if it does not support the call.
        The default is the setting of `set_default_algorithm`, which is "auto" at first.
    precision : str, default "high"
        Affects float32 on a GPU only. "ieee": float32 products. "high": sums of six bfloat16 products, as accurate as
        "ieee". "medium": sums of three bfloat16 products, with errors of at most 1e-5 times the result's largest
        magnitude.
    out : tuple or list of array, optional
        A pair that receives dx and dw. An entry of None stands for a new array. An array must have its result's shape,
        dtype and device, and share no memory with the inputs or the other array. It cannot be a jax.Array, which is
        immutable.

    Returns
    -------
    dx : array
        Gradient with respect to `x`, of the shape of `x`.
    dw : array
        Gradient with respect to `w`, of the shape of `w`.

    Raises
    ------
    TypeError
        An argument has the wrong type, an array has an unsupported dtype, or arrays differ in type, dtype or device.
    ValueError
        Shapes do not agree, a keyword's value is not allowed, or `out` cannot be written.
    MemoryError
        There is too little memory. On a CPU the message names the function and the result's shape and dtype. `out` is
        unchanged after this and the two errors above.
    BaseException
        Raised by a signal handler, such as KeyboardInterrupt. During a call in Python's main thread, handlers run about
        ten times a second. After the exception, `out` has undefined content.

    See Also
    --------
    conv_transpose : Transposed convolution.
    conv_transpose_backward_data : Gradient of `conv_transpose` with respect to its input.
    conv_transpose_backward_filter : Gradient of `conv_transpose` with respect to its filter.

    Notes
    -----
    Also known as aten convolution_backward with transposed=True.

    The arrays of a call are all numpy.ndarray, all torch.Tensor, all jax.Array (on a CPU) or all cupy.ndarray, and so
    is the result. They are on one device. Automatic differentiation does not record the call. All arrays have one
    dtype: float16, bfloat16 (of ml_dtypes in numpy.ndarray), float32, float64 or int32. Inputs may have any byte order;
    `out` and results have the machine's. float16 and bfloat16 are summed in float32 and then rounded once. int32 wraps.
    On one model of processor, with the same settings, the same inputs give the same bits for any number of threads.

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
