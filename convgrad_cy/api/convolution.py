"""Convolution and its gradients, each with one result."""

from ..calls import call
from ..checks import functions


def conv(
    x, w, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Convolution (cross-correlation) over one, two or three spatial axes.

    For each group, with item n, input channel i, output channel o, position p and tap t::

        y[n, o, p] = sum over i, t of  x[n, i, p * stride + t * dilation - pad_begin] * w[o, i, t]

    Terms whose index into ``x`` is out of range are omitted (zero padding).

    Parameters
    ----------
    x : array
        Input, of shape ``(N, C, *spatial)``.
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
    out : array, optional
        Receives the result. It must have the result's shape, dtype and device, and share no memory with the inputs. It
        cannot be a jax.Array, which is immutable.

    Returns
    -------
    array
        Output y, of shape ``(N, O, *output)``.

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
    conv_backward : Both gradients of `conv`.
    conv_backward_data : Gradient of `conv` with respect to its input.
    conv_backward_filter : Gradient of `conv` with respect to its filter.
    conv_transpose : Transposed convolution.

    Notes
    -----
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
    >>> cg.conv(x, w, padding=1)
    array([[[ 2.,  3.,  5.,  7., -7.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV, x, w, (), keywords, out)


def conv_backward_data(
    dy, w, x_shape, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Gradient of `conv` with respect to its input.

    For each group, with item n, input channel i, output channel o, positions p and q and tap t::

        dx[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad_begin == q of  dy[n, o, p] * w[o, i, t]

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``.
    w : array
        Filter, of shape ``(O, C // groups, *kernel)``.
    x_shape : sequence of int
        Shape of the input of `conv`, with all axes, in `data_format`. With a stride, several input sizes give the same
        output size, so it is needed.
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
    out : array, optional
        Receives the result. It must have the result's shape, dtype and device, and share no memory with the inputs. It
        cannot be a jax.Array, which is immutable.

    Returns
    -------
    array
        Gradient dx, of shape `x_shape`. Elements that no output depends on are zero.

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
    conv_backward : Both gradients of `conv`.
    conv_backward_filter : Gradient of `conv` with respect to its filter.

    Notes
    -----
    Also known as torch.nn.grad.conv2d_input, TensorFlow conv2d_backprop_input, oneDNN ConvolutionBackwardData and cuDNN
    dgrad.

    The arrays of a call are all numpy.ndarray, all torch.Tensor, all jax.Array (on a CPU) or all cupy.ndarray, and so
    is the result. They are on one device. Automatic differentiation does not record the call. All arrays have one
    dtype: float16, bfloat16 (of ml_dtypes in numpy.ndarray), float32, float64 or int32. Inputs may have any byte order;
    `out` and results have the machine's. float16 and bfloat16 are summed in float32 and then rounded once. int32 wraps.
    On one model of processor, with the same settings, the same inputs give the same bits for any number of threads.

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


def conv_backward_filter(
    x, dy, w_shape, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Gradient of `conv` with respect to its filter.

    For each group, with item n, input channel i, output channel o, position p and tap t::

        dw[o, i, t] = sum over n, p of  x[n, i, p * stride + t * dilation - pad_begin] * dy[n, o, p]

    Terms whose index into ``x`` is out of range are omitted (zero padding).

    Parameters
    ----------
    x : array
        Input of `conv`, of shape ``(N, C, *spatial)``.
    dy : array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``.
    w_shape : sequence of int
        Shape of the filter with all axes, in `filter_format`: ``(O, C // groups, *kernel)``.
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
    out : array, optional
        Receives the result. It must have the result's shape, dtype and device, and share no memory with the inputs. It
        cannot be a jax.Array, which is immutable.

    Returns
    -------
    array
        Gradient dw, of shape `w_shape`.

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
    conv_backward : Both gradients of `conv`.
    conv_backward_data : Gradient of `conv` with respect to its input.

    Notes
    -----
    Also known as torch.nn.grad.conv2d_weight, TensorFlow conv2d_backprop_filter, oneDNN ConvolutionBackwardWeights and
    cuDNN wgrad.

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
    >>> dy = np.array([[[1, 0, 10]]], np.float32)
    >>> cg.conv_backward_filter(x, dy, (1, 1, 3))
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV_BACKWARD_FILTER, x, dy, (w_shape,), keywords, out)
