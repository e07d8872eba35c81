"""The rules for attributes of MindSpore's operators, with their messages.

The messages are MindSpore's own, to the letter. The checks of integers, types and choices use MindSpore's expressions,
so they accept and refuse the same NumPy integers, booleans and subclasses.
"""

import functools
import inspect

#: Range of MindSpore's attributes, which are C++ longs.
_LONG = range(-(2**63), 2**63)


def checked_binding(init):
    """Check before the constructor's own rules, as MindSpore does, with the messages of `inspect`."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def bound(self, *args, **kwargs):
        for value in list(signature.bind(self, *args, **kwargs).arguments.values())[1:]:
            _check_long(value)
        init(self, *args, **kwargs)

    return bound


def _check_long(value):
    if isinstance(value, int) and value not in _LONG:
        raise RuntimeError("Unable to cast Python instance of type <class 'int'> to C++ type 'long'")
    if isinstance(value, (tuple, list, dict)):
        for member in value.values() if isinstance(value, dict) else value:
            _check_long(member)


#: Condition of an integer, in the words of the messages -> its check.
_RULES = {
    "> 0": lambda value: value > 0,
    ">= 0": lambda value: value >= 0,
    "= 4": lambda value: value == 4,
    "be one of 0, 1, 2, 3": lambda value: value in range(4),
    "be an integer": lambda value: True,
}


def check_integer(op, name, value, rule):
    """Check an int. Booleans and NumPy integers are refused with different messages."""
    kind = type(value).__name__
    if not isinstance(value, int):
        raise TypeError(f"For '{op}', the '{name}' must be int, but got '{kind}'")
    if isinstance(value, bool) or not _RULES[rule](value):
        error = TypeError if isinstance(value, bool) else ValueError
        raise error(f"For '{op}', the '{name}' must be int and must {rule}, but got '{value}' with type '{kind}'.")
    return value


def check_choice(op, name, value, allowed):
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"For '{op}', the '{name}' must be str and must be in '{allowed}', but got '{value}'.")


def check_type(op, name, value, kinds, expected):
    if not isinstance(value, kinds) or isinstance(value, bool):
        kind = type(value).__name__
        raise TypeError(f"For '{op}', the type of '{name}' should be {expected}, but got type '{kind}'.")


INTEGER_OR_TUPLE = (int, tuple), "one of '['int', 'tuple']'"


def positive_sizes(op, name, value, lengths, words):
    """The value as a tuple, if it is a positive integer, or a tuple of them whose length is in ``lengths``."""
    check_type(op, name, value, *INTEGER_OR_TUPLE)
    sizes = value if isinstance(value, tuple) else (value, value)
    positive = (isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes)
    if len(sizes) not in lengths or not all(positive):
        must = f"must be an positive int number or a tuple of {words} positive int numbers"
        raise ValueError(f"For '{op}' attr '{name}' {must}, but got {value}")
    return sizes
