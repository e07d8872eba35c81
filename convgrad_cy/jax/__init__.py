"""JAX's convolutions on a CPU, computed by convgrad_cy: ``enable()``, and nothing in a model changes.

``enable()`` replaces one rule of JAX: how ``lax.conv_general_dilated`` becomes a program for the CPU. All convolutions,
transposed convolutions and their gradients are this one primitive. Differentiation, ``vmap``, ``jit``, ``scan`` and
``checkpoint`` stay as they are, since they end before that rule.
"""

from . import version as version  # first: where JAX cannot be used, it says why
from .switch import disable, enable, enabled, is_enabled, status

__all__ = ["disable", "enable", "enabled", "is_enabled", "status"]
