"""The kernels of aten::_convolution and aten::convolution_backward, as PyTorch's dispatcher calls them.

    aten::_convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups, …) -> y
    aten::convolution_backward(dy, x, w, bias_sizes, stride, …, groups, output_mask) -> (dx, dw, d_bias)

A call is looked up by all that it depends on. Where it is ours, the plan that was made for the first call like it is
run on the tensors' memory; any other is passed on. In Python this would take longer than a small convolution. No header
of PyTorch is needed: tensors are asked as Python asks them.
"""

import sys

cimport cython

cdef enum:
    LARGE_COPY = 1 << 24  # bytes; glibc maps blocks of 32 MB and more anew each time

#: Why a call is passed on although there is a plan for its like.
UNREADABLE = "a tensor without memory, or at an address that is no multiple of its element's size"


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

    ``run(one, other, result)`` computes; it takes addresses, or tensors if not ``by_address``. ``new(shape, strides)``
    makes the result, or ``new_like(tensor)`` where it is not None: a gradient mostly lies in memory as its tensor does,
    and PyTorch makes it so in half the time. ``too_little(error)`` is the exception where memory is short.
    """
    cdef object run, new, new_like, too_little
    cdef bint by_address
    cdef readonly tuple shape, strides
    cdef size_t itemsize

    def __init__(
        self, run, bint by_address, new, new_like, tuple shape, tuple strides, size_t itemsize, too_little,
    ):
        self.run, self.by_address, self.new, self.new_like = run, by_address, new, new_like
        self.too_little = too_little
        self.shape, self.strides, self.itemsize = shape, strides, itemsize

    cdef object of(self, first, second, like):
        result = self.new(self.shape, self.strides) if self.new_like is None else self.new_like(like)
        try:
            if self.by_address:
                self.run(first.data_ptr(), second.data_ptr(), result.data_ptr())
            else:
                self.run(first, second, result)
        except MemoryError as error:
            raise self.too_little(error) from error
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
    key, ``pass_on`` has PyTorch's own kernel compute a call, and ``threads`` is the number to compute with.
    """
    cdef dict known
    cdef object make, pass_on, threads
    cdef readonly long computed  # calls

    def __init__(self, dict known, make, pass_on, threads):
        self.known, self.make, self.pass_on, self.threads = known, Untraced(make), Untraced(pass_on), threads


@cython.final
cdef class Forward(Kernel):
    def __call__(
        self, x, w, bias, stride, padding, dilation, transposed, output_padding, groups,
        benchmark, deterministic, cudnn_enabled, allow_tf32,
    ):
        key = (
            x.shape, x.stride(), x.dtype, type(x), w.shape, w.stride(), w.dtype, type(w),
            None if bias is None else (bias.shape, bias.dtype, type(bias)), tuple(stride), tuple(padding),
            tuple(dilation), transposed, tuple(output_padding), groups, self.threads(),
        )
        plan = self.known.get(key)
        if plan is None:
            plan = self.make(key, x, w, bias, stride, padding, dilation, transposed, output_padding, groups)
        if type(plan) is Result:
            if (<Result>plan).takes(x) and (<Result>plan).takes(w):
                self.computed += 1
                y = (<Result>plan).of(x, w, None)
                return y if bias is None else y.add_(bias.view((-1, *[1] * (x.dim() - 2))))
            plan = UNREADABLE
        return self.pass_on(
            plan, x, w, bias, stride, padding, dilation, transposed, output_padding, groups,
            benchmark, deterministic, cudnn_enabled, allow_tf32,
        )


@cython.final
cdef class Backward(Kernel):
    def __call__(
        self, dy, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
    ):
        key = (
            dy.shape, dy.stride(), dy.dtype, type(dy), x.shape, x.stride(), x.dtype, type(x),
            w.shape, w.stride(), w.dtype, type(w), None if bias_sizes is None else tuple(bias_sizes), tuple(stride),
            tuple(padding), tuple(dilation), transposed, tuple(output_padding), groups, tuple(output_mask),
            self.threads(),
        )
        plan = self.known.get(key)
        if plan is None:
            plan = self.make(
                key, dy, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
            )
        if type(plan) is tuple:
            data, filter = plan
            one = data if data is not None else filter
            if one is None or (<Result>one).takes(dy) and (<Result>one).takes(x) and (<Result>one).takes(w):
                self.computed += 1
                return (
                    None if data is None else (<Result>data).of(dy, w, x),
                    None if filter is None else (<Result>filter).of(x, dy, w),
                    bias_gradient(dy) if output_mask[2] else None,
                )
            plan = UNREADABLE
        return self.pass_on(
            plan, dy, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
        )
