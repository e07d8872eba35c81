"""Convolution and its gradients for Dask arrays, lazily, block by block: for data larger than memory.

A block of a result is computed by one call from a block of each input and its halo. Chunks may lie along the batch and
along the spatial axes. The gradient of a filter is the sum of the gradients of all blocks, in a tree that follows from
the chunks alone. So results have the same bits with any scheduler, any workers, and after the loss of a worker.
"""

from ..checks import functions
from ..checks.keywords import Options
from .graph import data, filter_gradient

__all__ = ["conv", "conv_backward_data", "conv_backward_filter"]


def conv(
    x, w, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high",
):  # fmt: skip
    """Convolution of a Dask array (cross-correlation: the filter is not flipped).

    For each group, without the terms whose index into ``x`` is out of range::

        y[n, o, p] = sum over i, t of  x[n, i, p * stride + t * dilation - pad_begin] * w[o, i, t]

    Parameters
    ----------
    x : dask.array.Array
        Input, of shape ``(N, C, *spatial)``.
    w : array or dask.array.Array
        Filter, of shape ``(O, C // groups, *kernel)``.
    stride, padding, dilation, groups, data_format, filter_format, algorithm, precision : optional
        The keywords of `convgrad_cy.conv`. "auto" chooses one algorithm for the whole problem, whatever the chunks are.
        "direct" gives each element of y and dx the bits of one call on a CPU.

    Returns
    -------
    dask.array.Array
        y, of shape ``(N, O, *output)``. It has a chunk for each chunk of `x`, which begins at the chunk's begin divided
        by the stride.

    Raises
    ------
    TypeError
        An argument has the wrong type, or arrays differ in dtype or library.
    ValueError
        A shape, size or keyword is impossible, or chunks do not fit. Channels and filters have one chunk. Chunks of `x`
        along a spatial axis are multiples of the stride, except the last. Chunks are at least as large as the halo. No
        array is rechunked silently.

    Notes
    -----
    Nothing is computed before ``compute``. Chunks are NumPy or CuPy arrays of float16, bfloat16, float32, float64 or
    int32. Blocks that one process computes at a time share the threads of `convgrad_cy.get_num_threads`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import convgrad_cy.dask as cd
    >>> x = da.from_array(np.array([[[1, 2, 4, 7, 11, 16]]], np.float32), chunks=(1, 1, 3))
    >>> w = np.array([[[-1, 0, 1]]], np.float32)
    >>> y = cd.conv(x, w, padding=1)
    >>> y.chunks[2], y.compute()
    ((3, 3), array([[[  2.,   3.,   5.,   7.,   9., -11.]]], dtype=float32))
    """
    options = Options(stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return data(functions.CONV, x, w, (), options)


def conv_backward_data(
    dy, w, x_shape, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high",
):  # fmt: skip
    """Gradient of `conv` with respect to its input, which is also the transposed convolution of `dy`.

    For each group::

        dx[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad_begin == q of  dy[n, o, p] * w[o, i, t]

    Parameters
    ----------
    dy : dask.array.Array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``.
    w : array or dask.array.Array
        Filter, of shape ``(O, C // groups, *kernel)``.
    x_shape : sequence of int
        Shape of the input with all axes, in `data_format`: ``(N, C, *spatial)``.
    stride, padding, dilation, groups, data_format, filter_format, algorithm, precision : optional
        The keywords of `convgrad_cy.conv`. "auto" chooses one algorithm for the whole problem, whatever the chunks are.
        "direct" gives each element of y and dx the bits of one call on a CPU.

    Returns
    -------
    dask.array.Array
        dx, of shape `x_shape`. It has a chunk for each chunk of `dy`, which begins at the chunk's begin times the
        stride.

    Raises
    ------
    TypeError
        An argument has the wrong type, or arrays differ in dtype or library.
    ValueError
        A shape, size or keyword is impossible, or chunks do not fit. Channels and filters have one chunk. Chunks of `x`
        along a spatial axis are multiples of the stride, except the last. Chunks are at least as large as the halo. No
        array is rechunked silently.

    Notes
    -----
    Nothing is computed before ``compute``. Chunks are NumPy or CuPy arrays of float16, bfloat16, float32, float64 or
    int32. Blocks that one process computes at a time share the threads of `convgrad_cy.get_num_threads`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import convgrad_cy.dask as cd
    >>> dy = da.from_array(np.array([[[1, 1, 2, 2]]], np.float32), chunks=(1, 1, 2))
    >>> w = np.array([[[1, 2, 3]]], np.float32)
    >>> dx = cd.conv_backward_data(dy, w, (1, 1, 9), stride=2)
    >>> dx.chunks[2], dx.compute()
    ((4, 5), array([[[1., 2., 4., 2., 5., 4., 8., 4., 6.]]], dtype=float32))
    """
    options = Options(stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return data(functions.CONV_BACKWARD_DATA, dy, w, (x_shape,), options)


def conv_backward_filter(
    x, dy, w_shape, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high",
):  # fmt: skip
    """Gradient of `conv` with respect to its filter.

    For each group::

        dw[o, i, t] = sum over n, p of  x[n, i, p * stride + t * dilation - pad_begin] * dy[n, o, p]

    Parameters
    ----------
    x : dask.array.Array
        Input of `conv`, of shape ``(N, C, *spatial)``.
    dy : dask.array.Array
        Gradient with respect to the output of `conv`, of shape ``(N, O, *output)``. It has the chunks that `conv` gives
        it.
    w_shape : sequence of int
        Shape of the filter with all axes, in `filter_format`: ``(O, C // groups, *kernel)``.
    stride, padding, dilation, groups, data_format, filter_format, algorithm, precision : optional
        The keywords of `convgrad_cy.conv`. "auto" chooses one algorithm for the whole problem, whatever the chunks are.
        "direct" gives each element of y and dx the bits of one call on a CPU.

    Returns
    -------
    dask.array.Array
        dw, of shape `w_shape`, in one chunk. Its bits depend on the chunks of `x`, because each block has a sum of its
        own. float16 and bfloat16 are summed in float32 and rounded once.

    Raises
    ------
    TypeError
        An argument has the wrong type, or arrays differ in dtype or library.
    ValueError
        A shape, size or keyword is impossible, or chunks do not fit. Channels and filters have one chunk. Chunks of `x`
        along a spatial axis are multiples of the stride, except the last. Chunks are at least as large as the halo. No
        array is rechunked silently.

    Notes
    -----
    Nothing is computed before ``compute``. Chunks are NumPy or CuPy arrays of float16, bfloat16, float32, float64 or
    int32. Blocks that one process computes at a time share the threads of `convgrad_cy.get_num_threads`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import convgrad_cy.dask as cd
    >>> x = da.from_array(np.array([[[1, 2, 4, 7, 11, 16]]], np.float32), chunks=(1, 1, 3))
    >>> dy = da.ones((1, 1, 6), dtype=np.float32, chunks=(1, 1, 3))
    >>> cd.conv_backward_filter(x, dy, (1, 1, 3), padding=1).compute()
    array([[[25., 41., 40.]]], dtype=float32)
    """
    options = Options(stride, padding, dilation, groups, data_format, filter_format, algorithm, precision)
    return filter_gradient(functions.CONV_BACKWARD_FILTER, x, dy, (w_shape,), options)
