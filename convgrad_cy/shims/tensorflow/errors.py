"""The exceptions of ``tf.errors`` that the operations raise.

They also derive from the built-in exceptions with the nearest meaning, so that code without TensorFlow can catch them.
"""

__all__ = ["InvalidArgumentError", "OpError", "UnimplementedError"]


def __dir__() -> list[str]:
    return __all__


class OpError(Exception):
    """An operation was refused.

    Attributes
    ----------
    message : str
        The error. TensorFlow puts the names of the node and of the device around it.
    error_code : int
        TensorFlow's number of the status.
    """

    error_code = 2

    @property
    def message(self) -> str:
        return str(self)


class InvalidArgumentError(OpError, ValueError):
    """An argument is illegal, alone or together with others."""

    error_code = 3


class UnimplementedError(OpError, NotImplementedError):
    """The request is meaningful, but no kernel supports it."""

    error_code = 12
