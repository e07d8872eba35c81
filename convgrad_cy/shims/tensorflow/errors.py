"""The exceptions of ``tf.errors`` that the operations raise.

Here they are also the built-in exceptions nearest in meaning, so that code which knows nothing of TensorFlow can
catch them.
"""

__all__ = ["InvalidArgumentError", "OpError", "UnimplementedError"]


def __dir__():
    return __all__


class OpError(Exception):
    """An operation was refused.

    Attributes
    ----------
    message : str
        What is wrong. TensorFlow puts the names of the node and of the device around it.
    error_code : int
        TensorFlow's number of the status.
    """

    error_code = 2

    @property
    def message(self):
        return str(self)


class InvalidArgumentError(OpError, ValueError):
    """An argument, or several together, can be used by no call."""

    error_code = 3


class UnimplementedError(OpError, NotImplementedError):
    """What is asked for has a meaning, and no kernel."""

    error_code = 12
