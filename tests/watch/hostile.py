"""Changes of a drawn call: a disguise, with which it still works, or an argument that may be refused."""

from fractions import Fraction

import layouts
import numpy as np
from numpy.lib.stride_tricks import as_strided


class Boom(Exception):
    """The exception that an argument's own method raises."""


class RaisingIndex:
    def __index__(self):
        raise Boom


class WrongIndex:
    def __index__(self):
        return "3"


class Index:
    """An integer of another kind."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Nasty:
    """An object that fails in every use."""

    def _fail(self, *arguments):
        raise Boom

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __getitem__ = __array__ = __int__ = _fail
    __float__ = __lt__ = __add__ = __mul__ = _fail


class Subclass(np.ndarray):
    """An array whose methods must not be called."""

    def _fail(self, *arguments, **keywords):
        raise Boom

    view = transpose = reshape = astype = copy = swapaxes = _fail


class Text(str):
    pass


HUGE = (2**31 - 1, 2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -(2**31), -(2**63), -(2**64))
#: Values that replace an integer.
SCALARS = (
    *(True, False, None, 0, -1, -7, 1.0, 2.5, float("nan"), float("inf"), 1j, "1", "", b"2", (), [], {}, {1}),
    *((3, 3, 3, 3, 3, 3), [[1]], [None], (1.5,), ("1",), range(2), object(), Ellipsis, int, 10**5000),
    *(np.float32(2), np.bool_(True), np.array([]), np.array([[1, 2], [3, 4]]), np.array(["1"]), np.array(None)),
    *(np.datetime64("2020"), np.timedelta64(3, "s"), np.uint64(2**64 - 1), np.int8(-1), Fraction(2), np.nan),
    *(RaisingIndex(), WrongIndex(), Nasty(), [RaisingIndex()], (Nasty(), Nasty()), [WrongIndex()]),
)
STRINGS = (
    *("ncx", "NHCW", "SAME", "auto", "winograd", "", "NCX\0", "valid "),
    *("\udc80", "x" * 10_000, b"NCX", Text("NXC")),
)
DTYPES = (
    *("i1", "i4", "i8", "u4", "?", "c8", "c16", "g", "O", "S3", "U2", "M8[s]"),
    *("f2", "f4", "f8", ">f4", ">f8", ">i4"),
)
OBJECTS = (*SCALARS, *HUGE, *STRINGS)


def _overlapping(random, call):
    """An input that replaces the result, or a view that shares some of it."""
    arrays = [np.asarray(value) for values, key in call.slots() if isinstance(value := values[key], np.ndarray)]
    array = random.choice(arrays)
    return random.choice((array, array.view(), array.reshape(-1)[::-1].reshape(array.shape)))


#: Arrays with equal values, which must give the same result.
GUISES = {
    "fortran": layouts.fortran,
    "negative strides": layouts.negative,
    "gaps": layouts.every_second,
    "read-only": layouts.read_only,
    "other order": layouts.channels_reversed_in_memory,
    "misaligned": layouts.record_field,
    "subclass": lambda array: array.view(Subclass),
    "odd address": lambda array: _at_odd_address(array),
}
#: Guises that a result may have. All others are refused.
TARGETS = ("fortran", "negative strides", "gaps", "other order", "subclass")


def _at_odd_address(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def _other_dtype(random, array):
    kind = np.dtype(random.choice(DTYPES))
    try:
        with np.errstate(all="ignore"):
            return array.astype(kind)
    except (TypeError, ValueError):
        return np.zeros(array.shape, kind)


def _other_shape(random, array):
    axis, one = random.randrange(array.ndim), array.reshape(-1)[:1]
    if array.size == 0:
        return array[None]
    return random.choice(
        (
            lambda: array[None],
            lambda: array[..., None, None],
            lambda: array[0],
            lambda: array.reshape(-1),
            lambda: one.reshape(()),
            lambda: np.take(array, [], axis),
            lambda: np.concatenate([array, array], axis),
            lambda: np.delete(array, 0, axis),
            lambda: array.swapaxes(0, axis),
            lambda: as_strided(one, array.shape, [0] * array.ndim),
            lambda: as_strided(one, [2 ** (50 // array.ndim)] * array.ndim, [0] * array.ndim),
            lambda: np.zeros(array.shape, [("a", array.dtype)]),
            lambda: np.ma.masked_array(array),
        )
    )()


def _values(random, array):
    """Values that are not finite, or subnormal, or huge."""
    changed = array.copy()
    if changed.size and changed.dtype.kind not in "iu":
        for _ in range(random.randrange(1, 5)):
            with np.errstate(all="ignore"):
                value = np.float64(random.choice((np.nan, np.inf, -np.inf, 1e-45, 3e38, -0.0, 1e-310)))
                changed.reshape(-1)[random.randrange(changed.size)] = value.astype(changed.dtype)
    return changed


def _is_array(value):
    return isinstance(value, np.ndarray) and value.dtype.kind != "O" and value.ndim >= 3 and value.size < 2**20


def disguise(random, call):
    """Give one argument of the call another guise."""
    values, key = random.choice(list(call.slots()))
    value = values[key]
    if _is_array(value):
        name = random.choice(list(GUISES if value is not call.out else TARGETS))
        values[key] = GUISES[name](value)
        if value is call.out:
            call.out = values[key]
        call.changes.append(f"{key!r}: {name}")
    elif key in ("stride", "padding", "dilation", "groups") and type(value) is int:
        values[key] = random.choice((np.int64, np.uint8, Index, lambda n: np.array(n, np.int16)))(value)
        call.changes.append(f"{key!r}: {type(values[key]).__name__}")


def _spoilt_array(random, call, array, is_out):
    """Another array that replaces one."""
    plain, roll = np.asarray(array), random.random()
    if roll < 0.3:
        return _other_dtype(random, plain)
    if roll < 0.6:
        return _other_shape(random, plain)
    if roll < 0.75 and is_out:
        return _overlapping(random, call)
    if roll < 0.8:
        return random.choice(list(GUISES.values()))(plain)
    return _values(random, plain)


def _spoilt_sequence(random, values):
    """The sequence with one other member."""
    members = list(values)
    members[random.randrange(len(members))] = random.choice((*SCALARS, *HUGE, *range(1, 9)))
    return random.choice((tuple, list))(members)


def spoil(random, call):
    """Replace an argument by something else. Return whether the call may now ask for more than any memory."""
    values, key = random.choice(list(call.slots()))
    value, roll = values[key], random.random()
    call.changes.append(f"{key!r} spoilt")
    if roll < 0.05:
        if isinstance(values, list):
            values.insert(key, random.choice(OBJECTS))
        else:
            values[random.choice(("axis", "stride", "out", "strides", "x", "padding"))] = random.choice(OBJECTS)
        return True
    if roll < 0.1:
        del values[key]
        return False
    if _is_array(value) and roll < 0.9:
        values[key] = _spoilt_array(random, call, value, value is call.out)
        if value is call.out:
            call.out = values[key]
        return values[key].size >= 2**20
    if isinstance(value, str) and roll < 0.6:
        values[key] = random.choice(STRINGS)
        return False
    is_sequence = isinstance(value, (tuple, list)) and value
    values[key] = _spoilt_sequence(random, value) if is_sequence and roll < 0.7 else random.choice(OBJECTS)
    return True
