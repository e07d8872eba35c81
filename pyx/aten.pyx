"""PyTorch's tensors as arrays, and the kernels that PyTorch's dispatcher calls:

    aten::_convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups, …) -> y
    aten::convolution_backward(dy, x, w, bias_sizes, stride, …, groups, output_mask) -> (dx, dw, d_bias)

The key of a call holds everything that its plan depends on. The first call with a key makes a plan, or a reason to
decline. Later calls with this key run the plan on the tensors' memory. Declined calls go to PyTorch's own kernel. While
``enable(benchmark=True)`` still measures a shape, its plan is a function that runs one of several plans. In Python this
lookup would take longer than a small convolution. The module needs no header of PyTorch, because it reads tensors by
their Python attributes.
"""

import sys

cimport cython
cimport numpy as cnp
from base.array_at cimport array_at

cnp.import_array()

cdef enum:
    LARGE_COPY = 1 << 24  # bytes; glibc maps blocks of 32 MB and more anew each time

#: The reason to pass a call on although its key has a plan.
UNREADABLE = "a tensor without memory, or whose address is not a multiple of its element size"


cdef object view(tensor, shape, strides, cnp.dtype dtype):
    """A NumPy array of a tensor's memory, which the tensor keeps; the strides are in elements."""
    cdef size_t address = tensor.data_ptr()
    if not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise TypeError("a tensor must have a shape and strides")
    # The casts are not checked: Cython's check would refuse torch.Size, which is a subclass of tuple.
    array = array_at(address, <tuple>shape, <tuple>strides, cnp.PyDataType_ELSIZE(dtype), dtype)
    if address == 0 and cnp.PyArray_SIZE(array) > 0:
        raise BufferError("a tensor must have memory")
    cnp.set_array_base(array, tensor)
    return array


def array_of(tensor, cnp.dtype dtype not None):
    """A NumPy array of a tensor's memory.

    A tensor without memory raises BufferError. A tensor whose memory does not hold its values (on another device, or
    with the negative bit) raises TypeError. ``dtype`` has the size of the tensor's elements. PyTorch's own ``numpy()``
    would make the memory unresizable for good, but sharded training frees its weights by resizing them.
    """
    if not tensor.is_cpu or tensor.is_neg():
        raise TypeError("a tensor must be on a CPU, without a negative bit")
    return view(tensor, tensor.shape, tensor.stride(), dtype)


def array_of_new(new, tuple shape, cnp.dtype dtype not None):
    """A C-contiguous NumPy array of the memory of a new tensor, which ``new(shape, strides)`` makes."""
    cdef Py_ssize_t step = 1
    cdef list strides = []
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, <Py_ssize_t>size)
    strides.reverse()
    of_tensor = tuple(strides)
    return view(new(shape, of_tensor), shape, of_tensor, dtype)


class Failed(Exception):
    """A plan could not be run for an unforeseen reason, which is this exception's cause."""


@cython.final
cdef class Untraced:
    """A Python function that Dynamo must not trace.

    When a compiled network falls back to eager mode, Dynamo traces every function that runs, also below PyTorch's
    dispatcher. Importing Dynamo takes long, so the function is disabled only after somebody else has imported it.
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
    """A plan that computes one tensor from two others at any addresses.

    ``run(one, other, result)`` computes on addresses. ``new_like(tensor)`` makes the result unless it is None; then
    ``new(shape, strides)`` does. A gradient usually has the strides of its tensor, and PyTorch's ``new_like`` is 2x
    faster than ``new``. ``too_little(error)`` makes the exception that reports a lack of memory.
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
    """dy summed over all axes except channels.

    PyTorch first copies 16-bit types to float32. A large copy would need new pages from the system on each call, so it
    is split into parts of a few images.
    """
    axes = (0, *range(2, dy.dim()))
    cdef Py_ssize_t copied = 0 if dy.element_size() > 2 else 4 * dy.numel()
    if copied <= LARGE_COPY:
        return dy.sum(axes)
    exact, images = sys.modules["torch"].float32, max(1, dy.shape[0] * LARGE_COPY // copied)
    return sum([part.sum(axes, dtype=exact) for part in dy.split(images)]).to(dy.dtype)


cdef class Kernel:
    """The common part of the forward and the backward kernel.

    ``known`` maps the key of a call to its plan, or to the reason why the call is declined, or to an `Untraced`
    function of (kernel, key, call), which selects a plan and calls ``run``. ``make`` adds the entry of a new key.
    ``fail`` replaces a plan that could not be run by a reason. ``count`` receives the reason of each declined call.
    ``threads()`` is the number of threads to use. ``previous`` is the kernel that was registered before (PyTorch's or
    another package's). It computes all declined calls, and all calls unless ``active``.
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
        return plan(self, key, call) if type(plan) is Untraced else self.run(plan, key, call)

    cpdef object run(self, plan, tuple key, tuple call):
        """The result of a call by a plan or, where the plan is a reason, by the earlier kernel."""
        x, w, bias = call[0], call[1], call[2]
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
        return plan(self, key, call) if type(plan) is Untraced else self.run(plan, key, call)

    cpdef object run(self, plan, tuple key, tuple call):
        """The results of a call by a plan or, where the plan is a reason, by the earlier kernel.

        A plan is (data, filter, mask): our two gradients or None, and the mask of the results that are the earlier
        kernel's, or None.
        """
        dy, x, w, mask = call[0], call[1], call[2], call[10]
        if type(plan) is tuple:
            data, filter, other_mask = plan
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
                if other_mask is None:
                    return dx, dw, bias_gradient(dy) if mask[2] else None
                others = self.previous(*call[:10], other_mask)
                dx, dw = others[0] if dx is None else dx, others[1] if dw is None else dw
                return dx, dw, others[2] if other_mask[2] else bias_gradient(dy) if mask[2] else None
        return self.pass_on(plan, call)
