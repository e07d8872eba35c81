"""``conv_backward``: both gradients of a convolution, on a GPU as one piece of work."""

from contextlib import nullcontext

from . import arguments, calls
from .arrays import NUMPY, Foreign, is_addressable, library_of, reach
from .documentation import documented
from .problem import DGRAD, WGRAD

_NAMES = ("dy", "x", "w")


def _pair(out):
    """The arrays that take dx and dw, or None in the place of one."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"out must be a pair of arrays, not {type(out).__name__}")
    if len(out) != 2:
        raise ValueError(f"out must have two entries, for dx and dw, not {len(out)}")
    return out


def _checked(library, arrays, outs):
    """Both without their subclasses; the outs are such as the results would be, and somewhere else."""
    dy, x, w = arrays = [library.plain(name, array, "dy") for name, array in zip(_NAMES, arrays, strict=True)]
    for name, array in (("x", x), ("w", w)):
        library.check_device(name, array, "dy", dy)
    others, checked = list(zip(_NAMES, arrays, strict=True)), []
    for i, (array, shape) in enumerate(zip(outs, (x.shape, w.shape), strict=True)):
        if array is not None:
            name = f"out[{i}]"
            array = arguments.checked_out(library, name, "dy", dy, array, shape)
            seen = library.seen(array)
            for other, input in others:
                arguments.check_no_overlap(name, seen, other, library.seen(input))
            others.append((name, array))
        checked.append(array)
    return arrays, checked


def _halves(arrays):
    """The two calls: function, arrays, and what only this function is asked."""
    dy, x, w = arrays
    return (
        (arguments.CONV_BACKWARD_DATA, dy, w, (x.shape, "x.shape")),
        (arguments.CONV_BACKWARD_FILTER, x, dy, (w.shape, "w.shape")),
    )


def _known_on_gpu(arrays, outs, keywords):
    """The key of a call, and what is remembered of it."""
    key = calls.gpu_key(conv_backward, (*arrays, *outs), (), keywords)
    return key, calls.remembered(key)


def _on_gpu(library, arrays, outs, keywords):
    """dx and dw of arrays of CuPy."""
    _, known = _known_on_gpu(arrays, outs, keywords)
    if known is None or not calls.are_apart_on_gpu(known.reaches, (*arrays, *outs), len(arrays)):
        arrays, outs = _checked(library, arrays, outs)
        key, known = _known_on_gpu(arrays, outs, keywords)
    if known is None:
        halves = _halves(arrays)
        geometries = [arguments.geometry_of(library, *half, keywords) for half in halves]
        if not all(array.size and is_addressable(library.seen(array)) for array in arrays):
            return [calls.call(*half, keywords, out) for half, out in zip(halves, outs, strict=True)]
    targets = [
        library.empty(array.shape, array.dtype, array) if out is None else out
        for array, out in zip(arrays[1:], outs, strict=True)
    ]
    if known is None:
        operands = (*arrays, *targets)
        # Operands of the three views x, w and y, by their places among dy, x, w, dx and dw.
        parts = zip((DGRAD, WGRAD), geometries, ((3, 2, 0), (1, 4, 0)), strict=True)
        work = calls.prepare(library, parts, operands)
        known = calls.Known(library, None, False, work, tuple(map(reach, operands)))
        calls.remember(key, known)
    known.work.run(*arrays, *targets)
    return targets


def _both(library, arrays, outs, keywords, empty=None):
    """dx and dw; ``empty`` makes them on a CPU, in the place of the library's own."""
    if library is not NUMPY:
        return _on_gpu(library, arrays, outs, keywords)
    arrays, outs = _checked(library, arrays, outs)
    data, filter = _halves(arrays)
    results = [None, None]

    def compute_data():
        results[0] = calls.call(*data, keywords, outs[0], empty)

    # The filter's gradient is checked first: what it allows, the other allows too. It is written last: by then there is
    # memory for both.
    results[1] = calls.call(*filter, keywords, outs[1], empty, compute_data)
    return results


def _foreign(library, arrays, outs, keywords):
    """dx and dw of arrays that NumPy or CuPy sees."""
    dy = arrays[0]
    with nullcontext() if library.around is None else library.around("dy", dy):
        likes = (None, "dy", "dy")
        seen = [library.view(*named, like, dy) for *named, like in zip(_NAMES, arrays, likes, strict=True)]
        targets = [None if out is None else library.view_out(f"out[{i}]", out, "dy", dy) for i, out in enumerate(outs)]
        results = _both(library_of("dy", seen[0]), seen, targets, keywords, library.empty)
        return [library.returned(result, out, dy) for result, out in zip(results, outs, strict=True)]


@documented
def conv_backward(
    dy, x, w, *, stride=1, padding=0, dilation=1, groups=1,
    data_format="NCX", filter_format="OIX", algorithm=None, precision="high", out=None,
):  # fmt: skip
    """Both gradients of `conv`, with respect to its input and to its filter.

    The results are those of `conv_backward_data` and `conv_backward_filter`, to the last bit. On a GPU, `dy` is brought
    into the kernels' layout once for both.

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
    library, outs = library_of("dy", dy), _pair(out)
    results = (_foreign if type(library) is Foreign else _both)(library, (dy, x, w), outs, keywords)
    return tuple([result if given is None else given for result, given in zip(results, outs, strict=True)])
