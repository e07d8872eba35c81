"""PyTorch: functional forward, ``aten.convolution_backward`` with an output mask for the gradients.

Channels last is PyTorch's own memory format, for activations and filters. One axis has no such format, so a case of one
axis is two-dimensional with rows of one there.
"""

import numpy as np
import torch
from torch.nn import functional

from bench.case import Unsupported

MEMORY_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
BACKWARD = torch.ops.aten.convolution_backward.default


def symmetric(case):
    """PyTorch's padding and output_padding, one per axis."""
    output_padding = []
    begins = [begin for begin, _ in case.padding]
    axes = zip(case.x[2:], case.y[2:], case.kernel, case.stride, case.dilation, begins, strict=True)
    for x, y, kernel, stride, dilation, begin in axes:
        # The sizes that symmetric padding gives. If they equal those in the case, all results are equal, too.
        rest = x + 2 * begin - (kernel - 1) * dilation - 1
        if rest // stride + 1 != y:
            raise Unsupported("asymmetric padding")
        output_padding.append(rest % stride)
    return begins, output_padding


class Library:
    allocates_result = True
    refusals = (RuntimeError, NotImplementedError)

    def __init__(self, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        mkldnn = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"
        self.version = f"{torch.__version__}, {mkldnn}"

    def operation(self, case, kernel, x, w, y):
        padding, output_padding = symmetric(case)
        stride, dilation, rank = list(case.stride), list(case.dilation), case.rank
        flat = case.channels_last and rank == 1
        if flat:
            rank = 2
            stride, dilation, padding, output_padding = (
                [1, *stride],
                [1, *dilation],
                [0, *padding],
                [0, *output_padding],
            )

        def tensor(array):
            made = torch.from_numpy(np.ascontiguousarray(array)).to(getattr(torch, case.dtype))
            if not case.channels_last:
                return made
            made = made.unsqueeze(2) if flat else made
            return made.contiguous(memory_format=MEMORY_FORMATS[made.ndim])

        forward = (case.transposed, kernel) in ((False, "fprop"), (True, "dgrad"))
        if forward and case.transposed:
            y, w = tensor(y), tensor(w)
            function = getattr(functional, f"conv_transpose{rank}d")
            return lambda: function(y, w, None, stride, padding, output_padding, case.groups, dilation)
        if forward:
            x, w = tensor(x), tensor(w)
            function = getattr(functional, f"conv{rank}d")
            return lambda: function(x, w, None, stride, padding, dilation, case.groups)

        # The layer's own view: a transposed convolution takes y and returns x.
        source, gradient = (y, x) if case.transposed else (x, y)
        source, gradient, w = tensor(source), tensor(gradient), tensor(w)
        which = 1 if kernel == "wgrad" else 0
        mask = [which == 0, which == 1, False]
        extra = output_padding if case.transposed else [0] * rank
        geometry = (stride, padding, dilation, case.transposed, extra, case.groups)
        return lambda: BACKWARD(gradient, source, w, None, *geometry, mask)[which]

    def plain(self, case, kernel, result):
        return result.to(torch.float64).numpy().reshape(case.shape(kernel))
