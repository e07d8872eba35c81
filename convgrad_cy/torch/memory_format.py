"""The memory format of results: the one of PyTorch's own kernels, because PyTorch's compiler expects it.

Two undocumented functions of PyTorch return it. Its fake tensors, which have no data, call the same two
(torch/_subclasses/fake_impls.py), so they are as stable as its compiler.
"""

import torch


def memory_format(x, w, stride, padding, dilation, transposed, output_padding, groups, **bias):
    """The memory format of all results of a convolution and of its gradients.

    ``bias`` is the keyword ``bias``, a tensor or None, or for gradients also ``bias_sizes``, its shape or None.
    """
    backend = torch._C._select_conv_backend(
        x,
        w,
        bias=bias.get("bias"),
        stride=stride,
        padding=padding,
        dilation=dilation,
        transposed=transposed,
        output_padding=output_padding,
        groups=groups,
        **{name: sizes for name, sizes in bias.items() if name != "bias"},
    )
    if x.ndim == 3:  # PyTorch computes a 1-D convolution as an image with one row
        x, w = x.contiguous().unsqueeze(2), w.unsqueeze(2)
    return torch._C._conv_determine_backend_memory_format(x, w, backend)


def strides(shape, memory_format):
    """Strides of a tensor of this shape, in elements."""
    if len(shape) == 3 and memory_format is torch.channels_last:
        image = torch.empty((*shape[:2], 1, shape[2]), device="meta", memory_format=memory_format)
        return image.squeeze(2).stride()
    return torch.empty(shape, device="meta", memory_format=memory_format).stride()
