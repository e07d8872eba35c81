"""What is done again by each call that is like an earlier one: threads, key, result, overlap, views, the kernel's call.

Compiled once, not for each instruction set; in Python these would take longer than the kernel of a small call.
"""

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBUF_WRITABLE
from cpython.ref cimport Py_INCREF

from base.array_at cimport array_at as array_of_memory

from math import prod

from numpy import empty, uint8

cdef extern from "parallel/threads.h" nogil:
    int threads_available()
    bint has_threads()
    bint lacks_threads()

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_Empty(int axes, cnp.npy_intp *extents, cnp.dtype dtype, int fortran)  # keeps a reference to dtype

cdef enum:
    SMALL_BYTES = 1 << 16
    LINE_BYTES = 64


def has_openmp():
    """Whether the compiler had OpenMP."""
    return bool(has_threads())


def lacks_openmp():
    """Whether the compiler had no OpenMP, and the build did not ask for one thread (CONVGRAD_CY_NO_OPENMP)."""
    return bool(lacks_threads())


def max_threads():
    """Threads that OpenMP would use now; 1 where the compiler had no OpenMP."""
    return threads_available()


cdef object plain(tuple values, int depth):
    """The values as a tuple that is equal to another only if all is of the same types; None if some are unusual.

    (True is equal to 1, but is refused in its place.) Keywords are pairs within tuples at the most.
    """
    cdef list changed = None
    cdef tuple members
    cdef Py_ssize_t i
    for i in range(len(values)):
        kind = type(values[i])
        if kind is int or kind is str or values[i] is None:
            continue
        if depth == 0:
            return None
        if kind is tuple or kind is list:
            members = tuple(values[i])
        elif isinstance(values[i], tuple):  # such as torch.Size; its own members, whatever a subclass says
            members = (<tuple>values[i])[:]
        else:
            return None
        inner = plain(members, depth - 1)
        if inner is None:
            return None
        if inner is not values[i]:
            if changed is None:
                changed = list(values)
            changed[i] = inner
    return values if changed is None else tuple(changed)


cdef bytes layout(cnp.ndarray array):
    """Shape, strides, the address's alignment and whether the memory is read-only; None where no call is legal.

    Bytes, since tuples of shape and strides take longer to be made, hashed and compared.
    """
    cdef Py_ssize_t numbers[11]
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(array)
    cdef int axis, axes = cnp.PyArray_NDIM(array)
    if axes > 5 or itemsize == 0:
        return None
    numbers[0] = 2 * (<size_t>cnp.PyArray_DATA(array) % <size_t>itemsize) + (not cnp.PyArray_ISWRITEABLE(array))
    for axis in range(axes):
        numbers[1 + 2 * axis], numbers[2 + 2 * axis] = cnp.PyArray_DIM(array, axis), cnp.PyArray_STRIDE(array, axis)
    return (<const char *>numbers)[:(1 + 2 * axes) * sizeof(Py_ssize_t)]


def call_key(function, first, second, out, tuple asked, tuple keywords, int threads):
    """The key, or None for a call that has to be checked each time: other than plain arrays and plain keywords."""
    if type(first) is not cnp.ndarray or type(second) is not cnp.ndarray:
        return None
    if out is not None and type(out) is not cnp.ndarray:
        return None
    asked, keywords = plain(asked, 1), plain(keywords, 2)
    if asked is None or keywords is None:
        return None
    of_out = None if out is None else (<object>cnp.PyArray_DESCR(out), layout(out))
    return (
        function, threads, asked, keywords, <object>cnp.PyArray_DESCR(first), layout(first),
        <object>cnp.PyArray_DESCR(second), layout(second), of_out,
    )


cdef void find_bounds(cnp.ndarray array, size_t *begin, size_t *end) noexcept:
    """Addresses between which all elements of an array are."""
    cdef int axis
    cdef Py_ssize_t span
    begin[0] = end[0] = <size_t>cnp.PyArray_DATA(array)
    end[0] += cnp.PyArray_ITEMSIZE(array)
    for axis in range(cnp.PyArray_NDIM(array)):
        span = (cnp.PyArray_DIM(array, axis) - 1) * cnp.PyArray_STRIDE(array, axis)
        if span < 0:
            begin[0] += span
        else:
            end[0] += span


def are_apart(cnp.ndarray out not None, cnp.ndarray first not None, cnp.ndarray second not None):
    """Whether ``out`` is clearly somewhere else than the other two: behind or before all of each."""
    cdef size_t[3] begin
    cdef size_t[3] end
    cdef int i
    find_bounds(out, begin, end)
    find_bounds(first, begin + 1, end + 1)
    find_bounds(second, begin + 2, end + 2)
    for i in range(1, 3):
        if begin[0] < end[i] and begin[i] < end[0]:
            return False
    return True


#: The most bytes of a new array, and what the user calls that bound; None: there is none.
cdef object most_bytes = None
cdef object name_of_most_bytes = None


def bound_arrays(most, name):
    """Refuse from now on, with a MemoryError, new arrays of more than so many bytes; None takes the bound away.

    For a process that computes what others ask for. Small arrays are not looked at, for the sake of small calls.
    """
    global most_bytes, name_of_most_bytes
    most_bytes, name_of_most_bytes = most, name


class TooLittleMemory(MemoryError):
    """A MemoryError that says of which array, or of which call's."""


cpdef check_bound(shape, dtype):
    """Refuse a new array that is beyond the bound."""
    if most_bytes is None:
        return
    size = prod(shape) * dtype.itemsize
    if size > most_bytes:
        asked = f"an array of shape {tuple(shape)} and dtype {dtype}"
        raise TooLittleMemory(f"{name_of_most_bytes} must be at least {size} for {asked}, not {most_bytes}")


def new_array(tuple shape, cnp.dtype dtype not None, like=None):
    """A new array of numbers, C-contiguous; other libraries take the device from ``like``.

    Vectors are loaded and stored faster where they do not cross cache lines, so arrays that are not small begin at one.
    """
    cdef cnp.npy_intp extents[5]
    cdef cnp.npy_intp size = dtype.itemsize
    cdef int axis, axes = len(shape)
    for axis in range(axes):
        if axis == 5 or size * shape[axis] >= SMALL_BYTES:  # of Python's integers, which do not overflow
            return aligned_array(shape, dtype)
        extents[axis] = shape[axis]
        size *= extents[axis]
    Py_INCREF(dtype)
    return PyArray_Empty(axes, extents, dtype, 0)


def aligned_array(tuple shape, dtype):
    """The same, but always beginning at a cache line."""
    cdef size_t begin
    check_bound(shape, dtype)
    size = prod(shape) * dtype.itemsize
    try:
        memory = empty(size + LINE_BYTES, uint8)
    except (MemoryError, ValueError) as error:  # the second: NumPy has no index for so many
        raise MemoryError(f"no {size} bytes for an array") from error
    begin = -<size_t>cnp.PyArray_DATA(memory) % LINE_BYTES
    return memory[begin : begin + size].view(dtype).reshape(shape)


def array_at(size_t address, tuple shape not None, tuple strides not None, cnp.dtype dtype not None):
    """A writeable array of memory that the caller keeps; ``strides`` are in bytes.

    It may also be planned with and never read: then any address with the right alignment will do.
    """
    return array_of_memory(address, shape, strides, 1, dtype)


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
    """An array seen in this way: a buffer, since making views with NumPy would take longer than a small kernel.

    An int in the array's place is the address of memory that the caller keeps, and that may be written.
    """
    cdef View view
    cdef object owner
    cdef void *data
    cdef bint writeable

    def __cinit__(self, View view not None, tuple arrays):
        cdef cnp.ndarray array
        self.view, self.owner = view, arrays[view.place]
        if type(self.owner) is int:
            self.data, self.writeable = <void *><size_t>self.owner, True
        else:
            array = <cnp.ndarray?>self.owner
            self.data, self.writeable = cnp.PyArray_DATA(array), cnp.PyArray_ISWRITEABLE(array)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        cdef View view = self.view
        if not self.writeable and flags & PyBUF_WRITABLE:
            raise BufferError("the array is read-only")
        buffer.obj, buffer.buf, buffer.readonly = self, self.data, not self.writeable
        buffer.format, buffer.itemsize, buffer.len, buffer.ndim = view.format, view.itemsize, view.size, 6
        buffer.shape, buffer.strides, buffer.suboffsets = view.shape, view.strides, NULL
        buffer.internal = NULL


@cython.final
cdef class Work:
    """What computes the result of a call, for arrays of certain shapes and strides.

    A kernel that returns False has met values out of its range: then the work ``instead`` is done.
    """
    cdef object kernel, code, program
    cdef Work instead
    cdef View source, filter, target

    def __init__(self, kernel, code, program, View source, View filter, View target, Work instead):
        self.kernel, self.code, self.program = kernel, code, program
        self.source, self.filter, self.target, self.instead = source, filter, target, instead

    cdef object compute(self, tuple arrays, before):
        return self.kernel(
            self.code, Seen(self.source, arrays), Seen(self.filter, arrays), Seen(self.target, arrays), self.program,
            before,
        )

    def run(self, first, second, result, before=None):
        """Write the result; each is an array, or an address (see ``Seen``).

        With ``before``, all memory is there before anything is written, that of the work ``instead``, too; then
        ``before`` is called, which may write something itself.
        """
        cdef tuple arrays = (first, second, result)
        if before is not None and self.instead is not None:
            self.instead.compute(arrays, Attempt(self, arrays, before))
        elif self.compute(arrays, before) is False:
            self.instead.run(first, second, result)


@cython.final
cdef class Attempt:
    """A call of the kernel of some work, from within that of the work ``instead``, whose memory is there already."""
    cdef Work work
    cdef tuple arrays
    cdef object before

    def __cinit__(self, Work work, tuple arrays, before):
        self.work, self.arrays, self.before = work, arrays, before

    def __call__(self):
        """Whether the result is there."""
        return self.work.compute(self.arrays, self.before)
