"""The checks of keywords: one function for each kind of value, with its errors."""

import operator
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from ..problem import INDEX_LIMIT


class Options(NamedTuple):
    """The keywords that all functions have, except ``out``, as the caller gave them."""

    stride: Any = 1
    padding: Any = 0
    dilation: Any = 1
    groups: Any = 1
    data_format: Any = "NCX"
    filter_format: Any = "OIX"
    algorithm: Any = None
    precision: Any = "high"


_RANKS = (1, 2, 3)

ALGORITHMS = {name: name for name in ("auto", "direct", "winograd")}

#: How products of float32 are formed on a GPU, the most exact first.
PRECISIONS = {name: name for name in ("ieee", "high", "medium")}


def _orders(general, specific, order):
    """Rank -> the general and the rank-specific name of a format, each with the order of axes."""
    return {rank: {general: order(rank)} | {name: order(rank) for name in specific[rank - 1 : rank]} for rank in _RANKS}


def _tables(*formats):
    return {rank: {name: order for table in formats for name, order in table[rank].items()} for rank in _RANKS}


#: Rank -> format -> the caller's axes in the order (batch, channels, spatial axes).
DATA_ORDERS = _tables(
    _orders("NCX", ("NCW", "NCHW", "NCDHW"), lambda rank: tuple(range(rank + 2))),
    _orders("NXC", ("NWC", "NHWC", "NDHWC"), lambda rank: (0, rank + 1, *range(1, rank + 1))),
)

#: Rank -> format -> the caller's axes in the order (out, in, spatial axes).
FILTER_ORDERS = _tables(
    _orders("OIX", ("OIW", "OIHW", "OIDHW"), lambda rank: tuple(range(rank + 2))),
    _orders("XIO", ("WIO", "HWIO", "DHWIO"), lambda rank: (rank + 1, rank, *range(rank))),
)


def shown(value):
    """The value as text for a message. It is short, and no value raises an exception."""
    try:
        text = repr(value)
    except Exception:  # for instance an int of more digits than Python prints
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."


def array_shape(value):
    """The shape of an array of any library, or None for a scalar or a value that is no array."""
    try:
        return tuple(value.shape) if getattr(value, "ndim", 0) else None
    except Exception:  # a value that raises here is no array
        return None


def choice(value, name, table, any_case=False):
    """The table's entry of a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {shown(value)}")
    if any_case and value not in table:
        value = next((known for known in table if known.lower() == str.lower(value)), value)
    if value not in table:
        meant = closest(value, table, 0.8)  # 0.8 excludes other orders of the letters, such as 'OIHW' for 'OHWI'
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise ValueError(f"{name} must be one of {', '.join(map(repr, table))}, not {shown(value)}{hint}")
    return table[value]


def closest(value, names, likeness):
    """The name that is most like a string, or None if its ratio (up to 1) is below ``likeness``."""
    from difflib import get_close_matches  # takes longer to import than a call takes

    lower = {name.lower(): name for name in names}
    found = get_close_matches(str.lower(value[:80]), lower, 1, likeness)
    return lower[found[0]] if found else None


def integer(value, name, least, kind="an integer"):
    """The value as an int, if it is an integer of at least ``least``. Booleans are refused."""
    if type(value) is not int:
        try:
            number = operator.index(value)
        except TypeError:
            number = None
        if number is None or isinstance(value, bool):
            raise TypeError(f"{name} must be {kind}, not {shown(value)}")
        value = number
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {shown(value)}")
    if value >= INDEX_LIMIT:
        raise ValueError(f"{name} must be less than 2**62, not {shown(value)}")
    return value


#: Members that are read from a sequence: more than any keyword takes, and few if the sequence never ends.
_MOST_MEMBERS = 6


def entries(value):
    """The first members of a sequence, each read once, or None if the value is no sequence.

    A sequence has a length and is indexed. Text, mappings and arrays without axes are no sequences.
    """
    kind = type(value)
    if kind is int or isinstance(value, (str, bytes, bytearray)):
        return None
    if not (hasattr(kind, "__len__") and hasattr(kind, "__getitem__")) or isinstance(value, Mapping):
        return None
    try:
        members = (
            tuple.__iter__(value) if isinstance(value, tuple) else iter(value)
        )  # ``call_key`` reads it in the same way
    except (TypeError, ValueError):  # an array without axes, or an unknown shape
        return None
    return list(islice(members, _MOST_MEMBERS))


def per_axis(value, name, rank, least, kind="an integer or one for each spatial axis"):
    """One integer for each spatial axis."""
    return _per_axis(value, entries(value), name, rank, least, kind)


def _per_axis(value, members, name, rank, least, kind, hint=""):
    if members is None:
        return (integer(value, name, least, kind),) * rank
    _check_count(value, members, name, rank, hint)
    return tuple([integer(member, f"{name}[{i}]", least) for i, member in enumerate(members)])


def _check_count(value, members, name, rank, hint=""):
    if len(members) != rank:
        raise ValueError(f"{name} must have one entry for each spatial axis, {rank}, not {shown(value)}{hint}")


_PADDING = "an integer, an integer or a (begin, end) pair for each spatial axis, or a string"


def padding_of(value, rank):
    """A (begin, end) pair for each spatial axis, or "same_upper" or "same_lower"."""
    if isinstance(value, str):
        return choice(value, "padding", _named_paddings(rank), any_case=True)
    members = entries(value)
    pairs = [entries(member) for member in members or ()]
    if all(pair is None for pair in pairs):
        hint = ""
        if rank == 1 and len(pairs) == 2:  # probably meant as one pair, for example of a causal convolution
            hint = f": a (begin, end) pair of one axis is ({_pair(members, members, 'padding')},)"
        return tuple([(pad, pad) for pad in _per_axis(value, members, "padding", rank, 0, _PADDING, hint)])
    _check_count(value, members, "padding", rank)
    return tuple([_pair(members[i], pair, f"padding[{i}]") for i, pair in enumerate(pairs)])


def _named_paddings(rank):
    return {"valid": ((0, 0),) * rank, "same": "same_upper", "same_upper": "same_upper", "same_lower": "same_lower"}


def _pair(value, members, name):
    if members is None or len(members) != 2:
        raise ValueError(f"{name} must be a (begin, end) pair like the other axes have, not {shown(value)}")
    return tuple([integer(member, f"{name}[{i}]", 0) for i, member in enumerate(members)])
