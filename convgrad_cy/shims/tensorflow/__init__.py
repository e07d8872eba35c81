"""TensorFlow's convolution of NumPy arrays: ``raw_ops`` as in ``tf.raw_ops``, ``errors`` as in ``tf.errors``."""

from . import errors as errors
from . import raw_ops as raw_ops

__all__ = ["errors", "raw_ops"]


def __dir__() -> list[str]:
    return __all__
