"""PyTorch's tensors as arrays, and the kernels of aten::_convolution and aten::convolution_backward, as its dispatcher
calls them.

    aten::_convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups, …) -> y
    aten::convolution_backward(dy, x, w, bias_sizes, stride, …, groups, output_mask) -> (dx, dw, d_bias)

A call is looked up by all that it depends on. Where it is ours, the plan that was made for the first call like it is
run on the tensors' memory; any other is passed on. In Python this would take longer than a small convolution. No header
of PyTorch is needed: tensors are asked as Python asks them.
"""

import sys

cimport cython
cimport numpy as cnp
from base.array_at cimport array_at

cnp.import_array()

cdef enum:
    LARGE_COPY = 1 << 24  # bytes; glibc maps blocks of 32 MB and more anew each time

#: Why a call is passed on although there is a plan for its like.
UNREADABLE = "a tensor without memory, or at an address that is no multiple of its element's size"


cdef object view(tensor, shape, strides, cnp.dtype dtype):
    """A NumPy array of a tensor's memory, which the tensor keeps; the strides are in elements."""
    cdef size_t address = tensor.data_ptr()
    if not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise TypeError("a tensor must have a shape and strides")
    # Not checked again: a tensor's shape is of a subclass.
    array = array_at(address, <tuple>shape, <tuple>strides, cnp.PyDataType_ELSIZE(dtype), dtype)
    if address == 0 and cnp.PyArray_SIZE(array) > 0:
        raise BufferError("a tensor must have memory")
    cnp.set_array_base(array, tensor)
    return array


def array_of(tensor, cnp.dtype dtype not None):
    """A NumPy array of a tensor's memory; a BufferError where it has none, another error where that is not its numbers.

    ``dtype`` has the size of its elements. PyTorch's own ``numpy()`` would mark the memory as one that can never be
    resized again, and sharded training frees its weights by resizing them.
    """
    if not tensor.is_cpu or tensor.is_neg():
        raise TypeError("a tensor must be on a CPU, without a negative bit")
    return view(tensor, tensor.shape, tensor.stride(), dtype)


def array_of_new(new, tuple shape, cnp.dtype dtype not None):
    """A NumPy array, C-contiguous, of the memory of a tensor that ``new(shape, strides)`` makes."""
    cdef Py_ssize_t step = 1
    cdef list strides = []
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, <Py_ssize_t>size)
    strides.reverse()
    of_tensor = tuple(strides)
    return view(new(shape, of_tensor), shape, of_tensor, dtype)


class Failed(Exception):
    """A plan could not be run, for a reason that was not foreseen: the cause of this exception."""


@cython.final
cdef class Untraced:
    """A function in Python that Dynamo is to leave alone.

    Where a compiled network falls back to eager mode, Dynamo traces every function that runs, those below PyTorch's
    dispatcher, too. It takes long to import, so it is told only where somebody has imported it.
    """
    cdef object function, disabled

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        if self.disabled is None:
            if "torch._dynamo" not in sys.modules:
                return self.function(*args)
            self.disabled = sys.modules["torch"].compiler.disable(self.function)
        return self.disabled(*args)


@cython.final
cdef class Result:
    """How a tensor is computed from two others, wherever these are.

    ``run(one, other, result)`` computes on addresses. ``new(shape, strides)`` makes the result, or
    ``new_like(tensor)`` where it is not None: a gradient mostly lies in memory as its tensor does, and PyTorch makes it
    so in half the time. ``too_little(error)`` is the exception where memory is short.
    """
    cdef object run, new, new_like, too_little
    cdef readonly tuple shape, strides
    cdef size_t itemsize

    def __init__(
        self, run, new, new_like, tuple shape, tuple strides, size_t itemsize, too_little,
    ):
        self.run, self.new, self.new_like, self.too_little = run, new, new_like, too_little
        self.shape, self.strides, self.itemsize = shape, strides, itemsize

    cdef object of(self, first, second, like):
        result = self.new(self.shape, self.strides) if self.new_like is None else self.new_like(like)
        try:
            self.run(first.data_ptr(), second.data_ptr(), result.data_ptr())
        except MemoryError as error:
            raise self.too_little(error) from error
        except Exception as error:
            raise Failed from error
        return result

    cdef bint takes(self, tensor) except -1:
        cdef size_t address = tensor.data_ptr()
        return address != 0 and address % self.itemsize == 0


cdef object bias_gradient(dy):
    """dy summed over all axes but that of channels.

    PyTorch copies 16-bit types to float32 first, in new pages if the copy is large: then it is made image by image.
    """
    axes = (0, *range(2, dy.dim()))
    cdef Py_ssize_t copied = 0 if dy.element_size() > 2 else 4 * dy.numel()
    if copied <= LARGE_COPY:
        return dy.sum(axes)
    exact, images = sys.modules["torch"].float32, max(1, dy.shape[0] * LARGE_COPY // copied)
    return sum([part.sum(axes, dtype=exact) for part in dy.split(images)]).to(dy.dtype)


cdef class Kernel:
    """What both have in common.

    ``known`` has the plan of each call by its key, or the reason why the call is not ours. ``make`` makes it for a new
    key, ``fail`` replaces a plan that could not be run by a reason, and ``count`` is told the reason of each call that
    is passed on. ``threads`` is the number to compute with. ``previous`` is PyTorch's kernel, or another
    package's, and computes all calls that are passed on. These are all calls unless this kernel is ``active``.
    """
    cdef dict known
    cdef object make, fail, count, threads
    cdef readonly long computed  # calls
    cdef public object previous
    cdef public bint active

    def __init__(self, dict known, make, fail, count, threads):
        self.known, self.make, self.fail, self.count = known, Untraced(make), Untraced(fail), Untraced(count)
        self.threads = threads

    cdef object pass_on(self, reason, tuple call):
        self.count(reason)
        return self.previous(*call)


@cython.final
cdef class Forward(Kernel):
    def __call__(self, *call):
        if not self.active:
            return self.previous(*call)
        x, w, bias, stride, padding, dilation, transposed, output_padding, groups, _, _, _, _ = call
        key = (
            x.shape, x.stride(), x.dtype, type(x), w.shape, w.stride(), w.dtype, type(w),
            None if bias is None else (bias.shape, bias.dtype, type(bias)), tuple(stride), tuple(padding),
            tuple(dilation), transposed, tuple(output_padding), groups, self.threads(),
        )
        plan = self.known.get(key)
        if plan is None:
            plan = self.make(key, x, w, bias, stride, padding, dilation, transposed, output_padding, groups)
        if type(plan) is Result:
            if not ((<Result>plan).takes(x) and (<Result>plan).takes(w)):
                return self.pass_on(UNREADABLE, call)
            try:
                y = (<Result>plan).of(x, w, None)
            except Failed as failed:
                plan = self.fail(key, failed.__cause__)
            else:
                self.computed += 1
                return y if bias is None else y.add_(bias.view((-1, *[1] * (x.dim() - 2))))
        return self.pass_on(plan, call)


@cython.final
cdef class Backward(Kernel):
    def __call__(self, *call):
        if not self.active:
            return self.previous(*call)
        dy, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask = call
        key = (
            dy.shape, dy.stride(), dy.dtype, type(dy), x.shape, x.stride(), x.dtype, type(x),
            w.shape, w.stride(), w.dtype, type(w), None if bias_sizes is None else tuple(bias_sizes), tuple(stride),
            tuple(padding), tuple(dilation), transposed, tuple(output_padding), groups, tuple(output_mask),
            self.threads(),
        )
        plan = self.known.get(key)
        if plan is None:
            plan = self.make(key, *call)
        if type(plan) is tuple:
            data, filter = plan
            one = data if data is not None else filter
            if not (one is None or (<Result>one).takes(dy) and (<Result>one).takes(x) and (<Result>one).takes(w)):
                return self.pass_on(UNREADABLE, call)
            try:
                dx = None if data is None else (<Result>data).of(dy, w, x)
                dw = None if filter is None else (<Result>filter).of(x, dy, w)
            except Failed as failed:
                plan = self.fail(key, failed.__cause__)
            else:
                self.computed += 1
                return dx, dw, bias_gradient(dy) if output_mask[2] else None
        return self.pass_on(plan, call)
