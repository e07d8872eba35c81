"""Operands: views of the arrays of a call, or of memory that its work allocates."""

from typing import Any, NamedTuple

from ..._repeat import distance
from ...arrays import NUMPY


class Buffer:
    """Memory for a copy or an intermediate result. Every run allocates it anew.

    ``template``: a one-dimensional array of the buffer's size and type. Its elements are never read or written, so the
    system gives it no pages.
    """

    __slots__ = ("template",)

    def __init__(self, template):
        self.template = template


class Operand(NamedTuple):
    """A view of an array of the call, or of a ``Buffer``.

    ``memory``: the index of the array among the call's two inputs and its result, or the buffer. ``offset``: bytes from
    the first element of the memory to the first element of the view. ``view``: an array with the view's shape, strides
    and type. Only its layout matters, because a plan holds for any arrays with the memory layout of the call's arrays.
    """

    memory: Any
    offset: int
    view: Any

    @classmethod
    def new(cls, shape, dtype, order=None):
        """An operand in a new buffer. ``order``: the axes from the outermost to the innermost in memory."""
        order = range(len(shape)) if order is None else order
        elements = NUMPY.empty(tuple(shape[axis] for axis in order), dtype)
        inverse = sorted(range(len(shape)), key=list(order).__getitem__)
        return cls(Buffer(elements.reshape(-1)), 0, elements.transpose(inverse))

    def with_view(self, view):
        """This operand with another view of the same memory; ``view`` must share memory with this operand's view."""
        return Operand(self.memory, self.offset + distance(self.view, view), view)
