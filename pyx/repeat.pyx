"""What is done again by each call that is like an earlier one: its key, the views of its arrays, the kernel's call.

Compiled once, not for each instruction set; in Python these would take longer than the kernel of a small call.
"""

cimport cython
from cpython.buffer cimport PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

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


cdef bytes layout(array):
    """Shape, strides, the address's alignment and whether the memory is read-only; None where no call is legal.

    Bytes, since tuples of shape and strides take longer to be made, hashed and compared.
    """
    cdef Py_buffer memory
    cdef Py_ssize_t numbers[11]
    cdef int axis
    PyObject_GetBuffer(array, &memory, PyBUF_STRIDES)
    try:
        if memory.ndim > 5 or memory.itemsize == 0:
            return None
        numbers[0] = 2 * (<size_t>memory.buf % <size_t>memory.itemsize) + memory.readonly
        for axis in range(memory.ndim):
            numbers[1 + 2 * axis], numbers[2 + 2 * axis] = memory.shape[axis], memory.strides[axis]
        return (<const char *>numbers)[:(1 + 2 * memory.ndim) * sizeof(Py_ssize_t)]
    finally:
        PyBuffer_Release(&memory)


def call_key(function, first, second, out, tuple asked, tuple keywords, int threads):
    """The key, or None for a call that has to be checked each time: other than plain arrays and plain keywords."""
    if type(first) is not ndarray or type(second) is not ndarray or (out is not None and type(out) is not ndarray):
        return None
    asked, keywords = plain(asked, 1), plain(keywords, 2)
    if asked is None or keywords is None:
        return None
    of_out = None if out is None else (out.dtype, layout(out))
    return function, threads, asked, keywords, first.dtype, layout(first), second.dtype, layout(second), of_out


@cython.final
cdef class View:
    """How a kernel sees one of the three arrays of a call, wherever that one is: as six axes.

    Made from the array's place among the three and a NumPy view of it, of the type that the kernel takes.
    """
    cdef int place
    cdef Py_ssize_t itemsize, size
    cdef Py_ssize_t shape[6]
    cdef Py_ssize_t strides[6]
    cdef bytes format

    def __init__(self, int place, view):
        cdef int axis
        self.place, self.itemsize, self.size = place, view.itemsize, view.nbytes
        self.format = memoryview(view).format.encode()
        for axis in range(6):
            self.shape[axis], self.strides[axis] = view.shape[axis], view.strides[axis]


@cython.final
@cython.freelist(8)
cdef class Seen:
    """An array seen in this way: a buffer, since making views with NumPy would take longer than a small kernel."""
    cdef View view
    cdef Py_buffer memory

    def __cinit__(self, View view not None, tuple arrays):
        self.view = view
        PyObject_GetBuffer(arrays[view.place], &self.memory, PyBUF_STRIDES)

    def __dealloc__(self):
        PyBuffer_Release(&self.memory)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        cdef View view = self.view
        if self.memory.readonly and flags & PyBUF_WRITABLE:
            raise BufferError("the array is read-only")
        buffer.obj, buffer.buf, buffer.readonly = self, self.memory.buf, self.memory.readonly
        buffer.format, buffer.itemsize, buffer.len, buffer.ndim = view.format, view.itemsize, view.size, 6
        buffer.shape, buffer.strides, buffer.suboffsets = view.shape, view.strides, NULL
        buffer.internal = NULL


@cython.final
cdef class Work:
    """What computes the result of a call, for arrays of certain shapes and strides.

    A kernel that returns False has met values out of its range: then the work ``instead`` is done.
    """
    cdef object kernel, program
    cdef Work instead
    cdef int code
    cdef View source, filter, target

    def __init__(self, kernel, int code, program, View source, View filter, View target, Work instead):
        self.kernel, self.code, self.program = kernel, code, program
        self.source, self.filter, self.target, self.instead = source, filter, target, instead

    def run(self, first, second, result):
        """Write the result."""
        cdef tuple arrays = (first, second, result)
        done = self.kernel(
            self.code, Seen(self.source, arrays), Seen(self.filter, arrays), Seen(self.target, arrays), self.program
        )
        if done is False:
            self.instead.run(first, second, result)
