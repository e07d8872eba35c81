"""JAX's arrays on a CPU, seen as NumPy's arrays in the same memory."""

import sys

import numpy as np

from .. import dtypes
from .._repeat import aligned_array
from .library import Foreign, refuse


def _shown(array):
    """The devices of an array, such as cpu:0."""
    return ", ".join(sorted(f"{device.platform}:{device.id}" for device in array.devices()))


def _view(name, array, like, first):
    jax = sys.modules["jax"]
    if not isinstance(array, jax.Array):
        refuse("jax.Array", name, array, like)
    if isinstance(array, jax.core.Tracer):
        remedy = (
            "under jit, vmap and grad, convgrad_cy.jax.enable() computes JAX's own convolutions with these kernels, "
            "and jax.pure_callback calls a function of concrete arrays"
        )
        raise TypeError(f"{name} must be a concrete array, not a {type(array).__name__}: {remedy}")
    devices = array.devices()
    if len(devices) != 1 or next(iter(devices)).platform != "cpu":
        remedy = f"jax.device_put({name}, jax.devices('cpu')[0]) copies it to one"
        raise TypeError(f"{name} must be on one device, a CPU, not on {_shown(array)}: {remedy}")
    if like is not None and devices != first.devices():
        raise TypeError(f"{name} must be on the device of {like}, {_shown(first)}, not on {_shown(array)}")
    if not isinstance(array.dtype, np.dtype):  # for example the dtype of random keys
        raise dtypes.refusal(name, array.dtype)
    if array.dtype == np.float64 and not jax.config.jax_enable_x64:
        raise TypeError(f"{name} must not be of float64, because JAX has no float64 without jax_enable_x64")
    return np.asarray(array)


def _view_out(name, out, like, first):
    raise TypeError(f"{name} must not be given for a jax.Array: JAX's arrays are immutable")


def _aligned(shape, dtype, like):
    """A new array that begins at a multiple of 64 bytes. JAX takes such an array over without a copy."""
    return aligned_array(shape, dtype)


def _returned(result, out, first):
    # (DLPack would do as well, but NumPy exports no bfloat16.)
    device = first.device if first.committed else None
    return sys.modules["jax"].device_put(result, device, may_alias=True)


JAX = Foreign("jax.Array", _view, _view_out, None, _aligned, _returned)
