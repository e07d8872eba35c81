"""The three convolutions of ``cupy.cudnn``, which CuPy dropped with version 14, on CuPy and NumPy arrays.

The signatures are CuPy 13's, and ``docs/golden-model.md`` lists the differences. The core computes with its own
kernels, on a GPU too, and cuDNN is not called. Arguments that chose among cuDNN's algorithms have no effect.
"""

from .cupy_cudnn_call import (
    BACKWARD_DATA,
    BACKWARD_FILTER,
    CUDNN_TENSOR_NCHW,
    CUDNN_TENSOR_NHWC,
    FORWARD,
    CuDNNError,
    check_tensor_core,
    run,
)

__all__ = [
    "CUDNN_TENSOR_NCHW",
    "CUDNN_TENSOR_NHWC",
    "CuDNNError",
    "convolution_backward_data",
    "convolution_backward_filter",
    "convolution_forward",
]


def __dir__() -> list[str]:
    return __all__


def convolution_forward(
    x, W, b, y, pad, stride, dilation, groups, *, auto_tune, tensor_core,
    d_layout=CUDNN_TENSOR_NCHW, w_layout=CUDNN_TENSOR_NCHW,
):  # fmt: skip
    """Convolution of `x` with `W`, written to `y`.

    For each group, without the terms whose index into `x` is out of range::

        y[n, o, p] = sum over i, t of  x[n, i, p * stride + t * dilation - pad] * W[o, i, t]  + b[o]

    Parameters
    ----------
    x : array
        Of shape ``(N, C, *spatial)``, with one to three spatial axes.
    W : array
        Of shape ``(O, C / groups, *kernel)``.
    b : array or None
        O numbers, added to the result.
    y : array
        Of shape ``(N, O, *output)``; the result is written to it.
    pad, stride, dilation : tuple of int
        One entry for each spatial axis. Padding is the same at both ends. None for `dilation` stands for one.
    groups : int
        Number of groups of channels.
    auto_tune : bool
        Does nothing.
    tensor_core : str
        "always", "auto" or "never". It is checked and has no effect.
    d_layout, w_layout : int, optional
        Layouts of the data and of the filter: CUDNN_TENSOR_NCHW, or for two spatial axes CUDNN_TENSOR_NHWC (channels
        last).

    Raises
    ------
    TypeError
        An argument is no array of NumPy or CuPy, or no tuple where a tuple is required. A type is not listed. Arrays
        differ in type or device.
    CuDNNError
        Shapes, numbers or layouts do not agree, or the result cannot be written or overlaps an input. It is a
        ValueError and a RuntimeError.
    ValueError
        A layout or `tensor_core` is unknown, or `pad` and `stride` differ in length.

    Notes
    -----
    Types: float16, which is summed in float32 and rounded once, float32 and float64. complex64 and complex128 are an
    addition to CuPy: four real convolutions form the products of real and imaginary parts. Nothing is conjugated.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad_cy.shims import cupy_cudnn as cudnn
    >>> x = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> W = np.array([[[-1, 0, 1]]], np.float32)
    >>> y = np.empty((1, 1, 3), np.float32)
    >>> cudnn.convolution_forward(x, W, None, y, (0,), (1,), (1,), 1, auto_tune=True, tensor_core="auto")
    >>> y
    array([[[3., 5., 7.]]], dtype=float32)
    """
    check_tensor_core(tensor_core)
    run(FORWARD, (x, W, y), b, pad, stride, dilation, groups, d_layout, w_layout)


def convolution_backward_data(
    W, x, b, y, pad, stride, dilation, groups, *, deterministic, auto_tune, tensor_core,
    d_layout=CUDNN_TENSOR_NCHW, w_layout=CUDNN_TENSOR_NCHW,
):  # fmt: skip
    """Gradient of a convolution with respect to its input, or transposed convolution of `x` with `W`, written to `y`.

    For each group::

        y[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad == q of  x[n, o, p] * W[o, i, t]  + b[i]

    Parameters
    ----------
    W : array
        Of shape ``(O, C / groups, *kernel)``.
    x : array
        Gradient with respect to the convolution's output, of shape ``(N, O, *output)``, with one to three spatial axes.
    b : array or None
        C numbers, added to the result.
    y : array
        Of shape ``(N, C, *spatial)``; the result is written to it.
    pad, stride, dilation : tuple of int
        One entry for each spatial axis. Padding is the same at both ends. None for `dilation` stands for one.
    groups : int
        Number of groups of channels.
    deterministic : bool
        Does nothing: results are always deterministic.
    auto_tune : bool
        Does nothing.
    tensor_core : str
        "always", "auto" or "never". It is checked and has no effect.
    d_layout, w_layout : int, optional
        Layouts of the data and of the filter: CUDNN_TENSOR_NCHW, or for two spatial axes CUDNN_TENSOR_NHWC (channels
        last).

    Raises
    ------
    TypeError
        An argument is no array of NumPy or CuPy, or no tuple where a tuple is required. A type is not listed. Arrays
        differ in type or device.
    CuDNNError
        Shapes, numbers or layouts do not agree, or the result cannot be written or overlaps an input. It is a
        ValueError and a RuntimeError.
    ValueError
        A layout or `tensor_core` is unknown, or `pad` and `stride` differ in length.

    Notes
    -----
    Types: float16, which is summed in float32 and rounded once, float32 and float64. complex64 and complex128 are an
    addition to CuPy: four real convolutions form the products of real and imaginary parts. Nothing is conjugated.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad_cy.shims import cupy_cudnn as cudnn
    >>> W = np.array([[[-1, 0, 1]]], np.float32)
    >>> x = np.array([[[1, 0, 10]]], np.float32)
    >>> y = np.empty((1, 1, 5), np.float32)
    >>> cudnn.convolution_backward_data(
    ...     W, x, None, y, (0,), (1,), (1,), 1, deterministic=False, auto_tune=True, tensor_core="auto")
    >>> y
    array([[[-1.,  0., -9.,  0., 10.]]], dtype=float32)
    """
    if not deterministic:  # as upstream
        check_tensor_core(tensor_core)
    run(BACKWARD_DATA, (y, W, x), b, pad, stride, dilation, groups, d_layout, w_layout)


def convolution_backward_filter(
    x, gy, gW, pad, stride, dilation, groups, *, deterministic, auto_tune, tensor_core,
    d_layout=CUDNN_TENSOR_NCHW, w_layout=CUDNN_TENSOR_NCHW,
):  # fmt: skip
    """Gradient of a convolution with respect to its filter, written to `gW`.

    For each group, without the terms whose index into `x` is out of range::

        gW[o, i, t] = sum over n, p of  x[n, i, p * stride + t * dilation - pad] * gy[n, o, p]

    Parameters
    ----------
    x : array
        Of shape ``(N, C, *spatial)``, with one to three spatial axes.
    gy : array
        Gradient with respect to the convolution's output, of shape ``(N, O, *output)``.
    gW : array
        Of shape ``(O, C / groups, *kernel)``; the result is written to it.
    pad, stride, dilation : tuple of int
        One entry for each spatial axis. Padding is the same at both ends. None for `dilation` stands for one.
    groups : int
        Number of groups of channels.
    deterministic : bool
        Does nothing: results are always deterministic.
    auto_tune : bool
        Does nothing.
    tensor_core : str
        "always", "auto" or "never". It is checked and has no effect.
    d_layout, w_layout : int, optional
        Layouts of the data and of the filter: CUDNN_TENSOR_NCHW, or for two spatial axes CUDNN_TENSOR_NHWC (channels
        last).

    Raises
    ------
    TypeError
        An argument is no array of NumPy or CuPy, or no tuple where a tuple is required. A type is not listed. Arrays
        differ in type or device.
    CuDNNError
        Shapes, numbers or layouts do not agree, or the result cannot be written or overlaps an input. It is a
        ValueError and a RuntimeError.
    ValueError
        A layout or `tensor_core` is unknown, or `pad` and `stride` differ in length.

    Notes
    -----
    Types: float16, which is summed in float32 and rounded once, float32 and float64. complex64 and complex128 are an
    addition to CuPy: four real convolutions form the products of real and imaginary parts. Nothing is conjugated.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad_cy.shims import cupy_cudnn as cudnn
    >>> x = np.array([[[1, 2, 4, 7, 11]]], np.float32)
    >>> gy = np.array([[[1, 0, 10]]], np.float32)
    >>> gW = np.empty((1, 1, 3), np.float32)
    >>> cudnn.convolution_backward_filter(
    ...     x, gy, gW, (0,), (1,), (1,), 1, deterministic=False, auto_tune=True, tensor_core="auto")
    >>> gW
    array([[[ 41.,  72., 114.]]], dtype=float32)
    """
    if not deterministic:  # as upstream
        check_tensor_core(tensor_core)
    run(BACKWARD_FILTER, (x, gW, gy), None, pad, stride, dilation, groups, d_layout, w_layout)
