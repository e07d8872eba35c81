"""Compute JAX's convolutions on a CPU with convgrad_cy: call ``enable()``, and leave the model as it is.

``enable()`` replaces one rule of JAX, which turns ``lax.conv_general_dilated`` into a program for the CPU. All
convolutions, transposed convolutions and their gradients are this one primitive. Differentiation, ``vmap``, ``jit``,
``scan`` and ``checkpoint`` act before this rule, so they stay as they are.
"""

from . import version as version  # first: it raises the error if JAX cannot be used
from .switch import disable, enable, enabled, is_enabled, status

__all__ = ["disable", "enable", "enabled", "is_enabled", "status"]
