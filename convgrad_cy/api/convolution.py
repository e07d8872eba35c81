"""Convolution and its gradients, each with one result."""

from ..calls import call
from ..checks import functions


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
        Input, of shape ``(N, C, *spatial)``.
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
    out : array, optional
        Receives the result. It has the result's shape and dtype, and shares no memory with the inputs. jax.Array is
        immutable, so it is not accepted.

    Returns
    -------
    array
        Output y, of shape ``(N, O, *output)``.

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
    conv_backward : Both gradients of `conv`.
    conv_backward_data : Gradient of `conv` with respect to its input.
    conv_backward_filter : Gradient of `conv` with respect to its filter.
    conv_transpose : Transposed convolution.

    Notes
    -----
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

    For each group::

        dx[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad_begin == q of  dy[n, o, p] * w[o, i, t]

    Parameters
    ----------
    dy : array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``.
    w : array
        Filter, of shape ``(O, C // groups, *kernel)``.
    x_shape : sequence of int
        Shape of the input of `conv`, with all axes, in `data_format`. Several input sizes can have the same output
        size, so it is needed.
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
    out : array, optional
        Receives the result. It has the result's shape and dtype, and shares no memory with the inputs. jax.Array is
        immutable, so it is not accepted.

    Returns
    -------
    array
        Gradient dx, of shape `x_shape`. Elements that no output depends on are zero.

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
    conv_backward : Both gradients of `conv`.
    conv_backward_filter : Gradient of `conv` with respect to its filter.

    Notes
    -----
    Also known as torch.nn.grad.conv2d_input, TensorFlow conv2d_backprop_input, oneDNN ConvolutionBackwardData and cuDNN
    dgrad.

    All arrays are numpy.ndarray, or torch.Tensor, or jax.Array on a CPU, or cupy.ndarray on one GPU, and the result has
    the same type. No gradients are recorded. All arrays have one dtype: float16, bfloat16 (of ml_dtypes in
    numpy.ndarray), float32, float64 or int32. Inputs may have any byte order; `out` and results have the machine's.
    float16 and bfloat16 are summed in float32 and rounded once. int32 wraps. The same inputs give the same bits for any
    number of threads.

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

    For each group, with no term where the position is outside ``x``::

        dw[o, i, t] = sum over n, p of  x[n, i, p * stride + t * dilation - pad_begin] * dy[n, o, p]

    Parameters
    ----------
    x : array
        Input of `conv`, of shape ``(N, C, *spatial)``.
    dy : array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``.
    w_shape : sequence of int
        Shape of the filter with all axes, in `filter_format`: ``(O, C // groups, *kernel)``.
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
    out : array, optional
        Receives the result. It has the result's shape and dtype, and shares no memory with the inputs. jax.Array is
        immutable, so it is not accepted.

    Returns
    -------
    array
        Gradient dw, of shape `w_shape`.

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
    conv_backward : Both gradients of `conv`.
    conv_backward_data : Gradient of `conv` with respect to its input.

    Notes
    -----
    Also known as torch.nn.grad.conv2d_weight, TensorFlow conv2d_backprop_filter, oneDNN ConvolutionBackwardWeights and
    cuDNN wgrad.

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
    >>> dy = np.array([[[1, 0, 10]]], np.float32)
    >>> cg.conv_backward_filter(x, dy, (1, 1, 3))
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """
    keywords = (stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return call(functions.CONV_BACKWARD_FILTER, x, dy, (w_shape,), keywords, out)
