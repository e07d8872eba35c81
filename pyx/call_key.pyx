"""What a call depends on beside the contents of its arrays, as a key for a dictionary. Compiled once."""

from numpy import ndarray


cdef object plain(values, int depth):
    """The values as a tuple that is equal to another only if all is of the same types; None if some are unusual.

    (True is equal to 1, but is refused in its place.) Keywords are pairs in tuples at the most.
    """
    cdef list result = []
    if depth == 0:
        return None
    for value in values:
        kind = type(value)
        if kind is tuple or kind is list:
            value = plain(value, depth - 1)
            if value is None:
                return None
        elif kind is not int and kind is not str and value is not None:
            return None
        result.append(value)
    return tuple(result)


cdef object layout(array):
    """Type, shape and strides; whether the address is aligned is not seen from these."""
    return array.dtype, array.shape, array.strides, array.flags.aligned


def call_key(function, first, second, out, tuple asked, tuple keywords, int threads):
    """The key, or None for a call that has to be checked each time: other than plain arrays and plain keywords."""
    if type(first) is not ndarray or type(second) is not ndarray or (out is not None and type(out) is not ndarray):
        return None
    asked, keywords = plain(asked, 2), plain(keywords, 3)
    if asked is None or keywords is None:
        return None
    return (
        function, layout(first), layout(second), None if out is None else layout(out), asked, keywords, threads,
    )
