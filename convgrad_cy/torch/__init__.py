"""Compute PyTorch's convolutions on a CPU with convgrad_cy: call ``enable()``, and leave the model as it is.

``enable()`` registers two kernels with PyTorch's dispatcher, at the key CPU. One is for ``aten::_convolution``, which
all convolutions and transposed convolutions call. The other is for ``aten::convolution_backward``. Autograd,
``torch.compile``, autocast and everything else above these operators stay as they are. The earlier kernels compute the
calls that ours do not support, and all calls after ``disable()``.
"""

from . import version as version  # first: it raises the error if PyTorch cannot be used
from .switch import disable, enable, enabled, is_enabled, status

__all__ = ["disable", "enable", "enabled", "is_enabled", "status"]
