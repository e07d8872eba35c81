"""The fast path of a call that equals an earlier one: threads, key, result, overlap, views, the call of the kernel.

In Python this would take longer than the kernel of a small call. Compiled once, not for each instruction set.
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
    """Whether the module was compiled with OpenMP."""
    return bool(has_threads())


def lacks_openmp():
    """Whether the compiler had no OpenMP, and the build did not ask for one thread (CONVGRAD_CY_NO_OPENMP)."""
    return bool(lacks_threads())


def max_threads():
    """Threads that OpenMP would use now, or 1 without OpenMP."""
    return threads_available()


cdef object plain(tuple values, int depth):
    """The values as a tuple of ints, strings, None and such tuples, or None if they have other types.

    Equal results have equal types, so equal keys mean equal calls. (True equals 1, but arguments must not be True.)
    ``depth`` is the greatest nesting of tuples; keywords have at most pairs within tuples.
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
        elif isinstance(values[i], tuple):  # such as torch.Size; a slice ignores methods that a subclass overrides
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
    """Shape, strides, misalignment of the address and whether the memory is read-only; None if no call is legal.

    The result is bytes, because tuples of shape and strides take longer to make, hash and compare.
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
    """The key of a call, or None if its arrays or keywords are not of plain types, so it must be checked each time."""
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
    """Set the range of addresses that contains all elements of an array."""
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
    """Whether the address range of ``out`` is disjoint from both others, so that they cannot overlap."""
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


#: The greatest number of bytes of a new array, and the user's name for this bound; None means no bound.
cdef object most_bytes = None
cdef object name_of_most_bytes = None


def bound_arrays(most, name):
    """Refuse, from now on, new arrays of more than ``most`` bytes with a MemoryError; None removes the bound.

    This is for processes that compute on behalf of others. Small arrays are not checked, to keep small calls fast.
    """
    global most_bytes, name_of_most_bytes
    most_bytes, name_of_most_bytes = most, name


class TooLittleMemory(MemoryError):
    """A MemoryError that names the array or the call that was too large."""


cpdef check_bound(shape, dtype):
    """Raise TooLittleMemory for a new array that exceeds the bound."""
    if most_bytes is None:
        return
    size = prod(shape) * dtype.itemsize
    if size > most_bytes:
        asked = f"an array of shape {tuple(shape)} and dtype {dtype}"
        raise TooLittleMemory(f"{name_of_most_bytes} must be at least {size} for {asked}, not {most_bytes}")


def new_array(tuple shape, cnp.dtype dtype not None, like=None):
    """A new C-contiguous array of numbers. ``like`` is ignored here; other libraries take the device from it.

    Loads and stores of vectors are faster if they do not cross cache lines, so large arrays begin at a cache line.
    """
    cdef cnp.npy_intp extents[5]
    cdef cnp.npy_intp size = dtype.itemsize
    cdef int axis, axes = len(shape)
    for axis in range(axes):
        if axis == 5 or size * shape[axis] >= SMALL_BYTES:  # a product of Python's integers, which does not overflow
            return aligned_array(shape, dtype)
        extents[axis] = shape[axis]
        size *= extents[axis]
    Py_INCREF(dtype)
    return PyArray_Empty(axes, extents, dtype, 0)


def aligned_array(tuple shape, dtype):
    """A new C-contiguous array of numbers that begins at a cache line."""
    cdef size_t begin
    check_bound(shape, dtype)
    size = prod(shape) * dtype.itemsize
    try:
        memory = empty(size + LINE_BYTES, uint8)
    except (MemoryError, ValueError) as error:  # ValueError: the size exceeds NumPy's index type
        raise MemoryError(f"no {size} bytes for an array") from error
    begin = -<size_t>cnp.PyArray_DATA(memory) % LINE_BYTES
    return memory[begin : begin + size].view(dtype).reshape(shape)


def array_at(size_t address, tuple shape not None, tuple strides not None, cnp.dtype dtype not None):
    """A writeable array of memory that the caller owns; ``strides`` are in bytes.

    If the array is only planned with and never read, any address with the right alignment will do.
    """
    return array_of_memory(address, shape, strides, 1, dtype)


def distance(cnp.ndarray first not None, cnp.ndarray second not None):
    """Bytes from the first element of one array to the first element of another one."""
    return <Py_ssize_t>(<size_t>cnp.PyArray_DATA(second) - <size_t>cnp.PyArray_DATA(first))


def address_of(memory):
    """The address of an array's first element. An int is an address already."""
    return memory if type(memory) is int else <size_t>cnp.PyArray_DATA(<cnp.ndarray?>memory)


@cython.final
cdef class View:
    """A kernel's six-axis view of one of the arrays of a work, without its address.

    Made from the array's index among the work's, the bytes from its first element to the view's, and a NumPy view of
    this layout with the kernel's type.
    """
    cdef int number
    cdef Py_ssize_t offset, itemsize, size
    cdef Py_ssize_t shape[6]
    cdef Py_ssize_t strides[6]
    cdef bytes format

    def __init__(self, int number, Py_ssize_t offset, view):
        cdef int axis
        self.number, self.offset, self.itemsize, self.size = number, offset, view.itemsize, view.nbytes
        self.format = memoryview(view).format.encode()
        for axis in range(6):
            self.shape[axis], self.strides[axis] = view.shape[axis], view.strides[axis]


@cython.final
@cython.freelist(8)
cdef class Seen:
    """A buffer: an array through a View. Making the view with NumPy would take longer than a small kernel.

    An int instead of an array is the address of writeable memory that the caller owns.
    """
    cdef View view
    cdef object owner
    cdef void *data
    cdef bint writeable

    def __cinit__(self, View view not None, tuple arrays):
        cdef cnp.ndarray array
        self.view, self.owner = view, arrays[view.number]
        if type(self.owner) is int:
            self.data, self.writeable = <char *><size_t>self.owner + view.offset, True
        else:
            array = <cnp.ndarray?>self.owner
            self.data, self.writeable = <char *>cnp.PyArray_DATA(array) + view.offset, cnp.PyArray_ISWRITEABLE(array)

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
    """A kernel, its plan and its views: computes the result of a call for arrays of certain shapes and strides.

    If the kernel returns False, it has met values out of its range; then the work ``instead`` is done.
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
        """Write the result. Each argument is an array or an address (see ``Seen``).

        ``before`` is called after all memory is allocated, also for the work ``instead``, and before anything is
        written. It may write something itself.
        """
        self.run_on((first, second, result), before)

    cpdef run_on(self, tuple arrays, before=None):
        """Like ``run``, for a kernel with more arrays to choose its operands from."""
        if before is not None and self.instead is not None:
            self.instead.compute(arrays, Attempt(self, arrays, before))
        elif self.compute(arrays, before) is False:
            self.instead.run_on(arrays)


@cython.final
cdef class Attempt:
    """A ``before`` for the work ``instead``: runs another work's kernel, after the memory of both is allocated."""
    cdef Work work
    cdef tuple arrays
    cdef object before

    def __cinit__(self, Work work, tuple arrays, before):
        self.work, self.arrays, self.before = work, arrays, before

    def __call__(self):
        """Compute and return whether the result exists."""
        return self.work.compute(self.arrays, self.before)
