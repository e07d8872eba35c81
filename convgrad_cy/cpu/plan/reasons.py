"""Reasons why a family refuses a task, as data.

Usually a reason is only compared with None. So its text is formatted only when it is shown. A reason without values is
a plain string, and ``str`` works for both.
"""

from math import inf
from typing import NamedTuple


class Ratio(NamedTuple):
    """A quotient that is computed when it is shown; infinite for a denominator of zero."""

    numerator: float
    denominator: float

    def __format__(self, spec):
        return format(self.numerator / self.denominator if self.denominator else inf, spec)


class Reason(tuple):
    """A format string and its values: numbers, a ``Ratio`` or another reason."""

    __slots__ = ()

    def __new__(cls, text, *values):
        return super().__new__(cls, (text, *values))

    def __str__(self):
        text, *values = self
        return text.format(*values)
