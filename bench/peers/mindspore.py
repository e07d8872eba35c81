"""MindSpore on the CPU, eagerly (PyNative): the primitives that its layers and their gradients call. NCHW only."""

import mindspore as ms
import numpy as np
from mindspore.common.api import _pynative_executor
from mindspore.ops.operations import _grad_ops, nn_ops

from bench.case import Unsupported


class Library:
    allocates_result = True
    refusals = (RuntimeError, TypeError, ValueError)

    def __init__(self, threads):
        ms.set_device("CPU")
        ms.device_context.cpu.op_tuning.threads_num(threads)
        self.version = ms.__version__

    def operation(self, case, kernel, x, w, y):
        if case.channels_last:
            raise Unsupported("MindSpore has channels last on GPUs only")
        stride, dilation, padding = case.stride, case.dilation, case.padding
        if case.rank == 1:
            x, w, y = (np.expand_dims(array, 2) for array in (x, w, y))
            stride, dilation, padding = (1, *stride), (1, *dilation), ((0, 0), *padding)
        ends = tuple(end for pair in padding for end in pair)
        options = {"mode": 1, "pad_mode": "pad", "pad": ends, "stride": stride, "group": case.groups}
        outputs, x_shape, w_shape = w.shape[0], x.shape, w.shape
        kernel_size = w.shape[2:]

        def tensor(array):
            return ms.Tensor(np.ascontiguousarray(array)).astype(getattr(ms, case.dtype))

        def finished(call):
            """A call that waits for its result: PyNative returns before the result exists."""

            def run():
                result = call()
                _pynative_executor.sync()
                return result

            return run

        if kernel == "fprop":
            x, w = tensor(x), tensor(w)
            primitive = ms.ops.Conv3D if case.rank == 3 else ms.ops.Conv2D
            conv = primitive(outputs, kernel_size, dilation=dilation, **options)
            return finished(lambda: conv(x, w))
        if kernel == "dgrad":
            y, w = tensor(y), tensor(w)
            if case.rank == 3:
                data = nn_ops.Conv3DBackpropInput(outputs, kernel_size, dilation=dilation, **options)
                return finished(lambda: data(w, y, x_shape))
            transpose = ms.ops.Conv2DTranspose(outputs, kernel_size, dilation=dilation, **options)
            return finished(lambda: transpose(y, w, x_shape))
        x, y = tensor(x), tensor(y)
        if case.rank == 3:
            options["stride"] = (1, 1, *stride)
            filter = _grad_ops.Conv3DBackpropFilter(outputs, kernel_size, dilation=(1, 1, *dilation), **options)
            return finished(lambda: filter(x, y, w_shape))
        options["pad_list"] = ends  # "pad" alone has no effect on this operation
        filter = _grad_ops.Conv2DBackpropFilter(outputs, kernel_size, dilation=(1, 1, *dilation), **options)
        return finished(lambda: filter(y, x, w_shape))

    def plain(self, case, kernel, result):
        return result.astype(ms.float64).asnumpy().reshape(case.shape(kernel))
