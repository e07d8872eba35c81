"""Texts of calls, the keys of choices. Calls that take equal time have equal texts."""

import torch

import convgrad_cy

from .. import cpu

FORWARD, DATA, FILTER = "forward", "data gradient", "filter gradient"


def _sizes(values):
    return "x".join(map(str, values)) or "none"


def _tensor(name, shape, strides):
    return f"{name} {_sizes(shape)} with strides {_sizes(strides)}"


def _geometry(stride, padding, dilation, transposed, output_padding, groups):
    kind = "transposed, " if transposed else ""
    lists = f"stride {_sizes(stride)}, padding {_sizes(padding)}, dilation {_sizes(dilation)}"
    return f"{kind}{lists}, output_padding {_sizes(output_padding)}, groups {groups}"


def _dtype(dtype):
    return str(dtype).removeprefix("torch.")


def forward(key):
    """The text of a call of ``aten::_convolution`` from the key of its plan (pyx/aten.pyx)."""
    x, x_strides, dtype, _, w, w_strides, _, _, bias, *geometry, _ = key
    tensors = [_tensor("x", x, x_strides), _tensor("w", w, w_strides), *(["bias"] if bias else [])]
    return f"{FORWARD}: {', '.join([_dtype(dtype), *tensors, _geometry(*geometry)])}"


def backward(key):
    """The text of a call of ``aten::convolution_backward`` from the key of its plan (pyx/aten.pyx)."""
    dy, dy_strides, dtype, _, x, x_strides, _, _, w, w_strides, _, _, _, *geometry, mask, _ = key
    operations = [name for name, wanted in ((DATA, mask[0]), (FILTER, mask[1])) if wanted]
    arrays = ("dy", dy, dy_strides), ("x", x, x_strides), ("w", w, w_strides)
    tensors = [_tensor(*array) for array in arrays] + (["gradient of bias"] if mask[2] else [])
    return f"{'+'.join(operations)}: {', '.join([_dtype(dtype), *tensors, _geometry(*geometry)])}"


def operations_of(text):
    """The operations of a call, from its text."""
    return text.partition(":")[0].split("+")


def environment(threads, algorithm):
    """The text of everything else that a time depends on."""
    versions = f"convgrad_cy {convgrad_cy.__version__}, torch {torch.__version__}"
    return f"{versions}, {cpu.isa}, threads {threads}, algorithm {algorithm}"
