"""The errors for tensors of PyTorch that are refused, with a remedy for each.

A tensor is refused if its memory is no NumPy array, or if PyTorch would lose its gradient.
"""

from .. import dtypes
from .library import refuse


def check_plain(torch, name, tensor, like):
    """Refuse subclasses. They may store their elements elsewhere, or change the meaning of operations."""
    if not isinstance(tensor, torch.Tensor):
        refuse("torch.Tensor", name, tensor, like)
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        remedy = f"{name}.as_subclass(torch.Tensor) makes it one where its memory holds its elements"
        raise TypeError(f"{name} must be a plain torch.Tensor, not a {kind.__module__}.{kind.__name__}: {remedy}")


def check_without_gradient(torch, name, tensor):
    """Refuse a tensor that needs a gradient, which would be lost without a message."""
    if tensor.requires_grad and torch.is_grad_enabled():
        raise TypeError(f"{name} must not require grad here: use convgrad_cy.torch, or {name}.detach()")
    if torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
        raise TypeError(f"{name} must not have a tangent: use torch.autograd.forward_ad.unpack_dual({name}).primal")


def check_writeable(name, out):
    """Refuse an ``out`` that requires grad: no result is part of a graph."""
    if out.requires_grad:
        raise TypeError(f"{name} must not require grad: use {name}.detach()")


def note_change(torch, out):
    """Tell PyTorch that ``out`` has changed. A backward pass that has saved it will then raise an error."""
    try:
        torch.autograd.graph.increment_version(out)
    except RuntimeError:
        if not out.is_inference():  # no backward pass can save an inference tensor
            raise


def refusal(torch, name, tensor, like, first, error):
    """The exception for a tensor that could not be seen as an array, because of PyTorch's ``error``."""
    if like is not None and tensor.device != first.device:
        return TypeError(f"{name} must be on the device of {like}, {first.device}, not on {tensor.device}")
    if tensor.device.type == "meta":
        return TypeError(f"{name} must be on a CPU or a CUDA device, not on meta, where it has no elements")
    if tensor.device.type not in ("cpu", "cuda"):
        return TypeError(f"{name} must be on a CPU or a CUDA device, not on {tensor.device}: use {name}.cpu()")
    if tensor.layout is not torch.strided:
        return TypeError(f"{name} must be a strided tensor, not of the layout {tensor.layout}: use {name}.to_dense()")
    if tensor.is_nested:
        return TypeError(f"{name} must not be a nested tensor: use torch.nested.to_padded_tensor")
    if tensor.is_quantized:
        return TypeError(f"{name} must not be quantised: use {name}.dequantize()")
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in dtypes.NAMES:
        return dtypes.refusal(name, dtype)
    if tensor.is_neg():
        return TypeError(f"{name} must not have its negative bit set: use {name}.resolve_neg()")
    return TypeError(f"{name} must have memory of its own, as within torch.func's transforms it has not ({error})")
