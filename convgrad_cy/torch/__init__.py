"""PyTorch's convolutions on a CPU, computed by convgrad_cy: ``enable()``, and nothing in a model changes.

``enable()`` puts two kernels into PyTorch's dispatcher, at the key CPU: of ``aten::_convolution``, which convolutions
and transposed convolutions end in, and of ``aten::convolution_backward``. Autograd, ``torch.compile``, autocast and all
else that PyTorch builds above them stays as it is. What these kernels do not compute goes to those that were there:
after ``disable()`` everything.
"""

from . import version as version  # first: where PyTorch cannot be used, it says why
from .switch import disable, enable, enabled, is_enabled, status

__all__ = ["disable", "enable", "enabled", "is_enabled", "status"]
