"""What is done again by each call that is like an earlier one: its key, the views of its arrays, the kernel's call.

Compiled once, not for each instruction set; in Python these would take longer than the kernel of a small call.
"""

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
        if inner is not values[i]:
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


cdef class View:
    """How a kernel sees one of the three arrays of a call.

    ``place``: which of the three. ``order``: the caller's axes in the order (batch, channels, spatial) or (out, in,
    spatial). ``shape``: the channels split by groups, missing spatial axes of extent one. ``swapped``: these six axes
    in the order of the kernel. ``dtype``: as which the kernel takes the elements. Except for the shape, None where
    nothing has to be changed.
    """
    cdef readonly int place
    cdef readonly tuple order, shape, swapped
    cdef readonly object dtype

    def __init__(self, int place, tuple order, tuple shape, tuple swapped=None, dtype=None):
        self.place, self.order, self.shape, self.swapped, self.dtype = place, order, shape, swapped, dtype

    cpdef of(self, tuple arrays):
        array = arrays[self.place]
        if self.order is not None:
            array = array.transpose(self.order)
        array = array.reshape(self.shape)
        if self.swapped is not None:
            array = array.transpose(self.swapped)
        return array if self.dtype is None else array.view(self.dtype)


cdef class Work:
    """What computes the result of a call, for arrays of certain shapes and strides, wherever they are."""
    cdef object kernel, program
    cdef int code
    cdef View source, filter, target

    def __init__(self, kernel, int code, program, View source, View filter, View target):
        self.kernel, self.code, self.program = kernel, code, program
        self.source, self.filter, self.target = source, filter, target

    def run(self, first, second, result):
        """Write the result."""
        cdef tuple arrays = (first, second, result)
        self.kernel(self.code, self.source.of(arrays), self.filter.of(arrays), self.target.of(arrays), self.program)
