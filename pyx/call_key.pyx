"""What a call depends on beside the contents of its arrays, as a key for a dictionary. Compiled once."""

from numpy import ndarray


cdef object plain(tuple values, int depth):
    """The values as a tuple that is equal to another only if all is of the same types; None if some are unusual.

    (True is equal to 1, but is refused in its place.) Keywords are pairs within tuples at the most.
    """
    cdef list changed = None
    cdef Py_ssize_t i
    for i in range(len(values)):
        kind = type(values[i])
        if kind is int or kind is str or values[i] is None:
            continue
        if depth == 0 or (kind is not tuple and kind is not list):
            return None
        inner = plain(tuple(values[i]), depth - 1)
        if inner is None:
            return None
        if changed is None:
            changed = list(values)
        changed[i] = inner
    return values if changed is None else tuple(changed)


def call_key(function, first, second, out, tuple asked, tuple keywords, int threads):
    """The key, or None for a call that has to be checked each time: other than plain arrays and plain keywords.

    Shape and strides do not say whether the address is aligned.
    """
    if type(first) is not ndarray or type(second) is not ndarray or (out is not None and type(out) is not ndarray):
        return None
    asked, keywords = plain(asked, 1), plain(keywords, 2)
    if asked is None or keywords is None:
        return None
    return (
        function, threads, asked, keywords,
        first.dtype, first.shape, first.strides, first.flags.aligned,
        second.dtype, second.shape, second.strides, second.flags.aligned,
        None if out is None else (out.dtype, out.shape, out.strides, out.flags.aligned),
    )
