"""The driver's part in tensor maps: its refusals, and the 128 bytes that the simulator reads (tensor_map.hpp).

The rules come from cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col in the reference of CUDA's driver.
"""

import ctypes
import struct
from unittest.mock import patch

from convgrad_cy.gpu import tensor_map

INVALID_VALUE = 1
_KNOWN = 0x70616D74
#: Bits of corners, with their sign, by the rank of an im2col map.
_CORNER_BITS = {3: 16, 4: 8, 5: 5}
_HALVES = (6, 9)


class Refused(Exception):
    """A call that the driver answers with CUDA_ERROR_INVALID_VALUE."""


def _require(condition, what):
    if not condition:
        raise Refused(what)


def _write(place, rank, address, sizes, strides, box, steps, *, lower=(), upper=()):
    def filled(values, count):
        return [*values, *[0] * (count - len(values))]

    packed = struct.pack(
        "<IBB5B5xQ4Q5I5H3h3h",
        _KNOWN,
        bool(lower),
        rank,
        *filled(steps, 5),
        address,
        *filled(strides, 4),
        *filled(sizes, 5),
        *filled(box, 5),
        *filled(lower, 3),
        *filled(upper, 3),
    )
    ctypes.memmove(place, packed.ljust(tensor_map.BYTES, b"\0"), tensor_map.BYTES)


def _check(place, kind, rank, address, sizes, strides, steps, how):
    _require(place % 64 == 0, "the map must begin at a multiple of 64")
    _require(
        kind in _HALVES and how == (0, 3, 3, 0), "the simulator has 16-bit types, the swizzle of 128 bytes and zeros"
    )
    _require(address % 16 == 0, "the tensor must begin at a multiple of 16")
    _require(all(0 < size <= 2**32 for size in sizes), f"sizes {sizes}")
    _require(all(0 < step < 2**40 and step % 16 == 0 for step in strides), f"strides {strides}")
    _require(all(1 <= step <= 8 for step in steps) and len(steps) == rank, f"element strides {steps}")


class Library:
    """Functions of the driver, called by ctypes."""

    def cuTensorMapEncodeTiled(self, place, kind, rank, address, sizes, strides, box, steps, *how):
        def make(place, rank, address, sizes, strides, steps):
            _check(place, kind, rank, address, sizes, strides, steps, how)
            _require(len(box) == rank and all(0 < size <= 256 for size in box), f"box {list(box)}")
            _require(box[0] * 2 <= 128, "a row of the swizzle has 128 bytes")
            _write(place, rank, address, sizes, strides, list(box), steps)

        return _status(make, place, rank, address, sizes, strides, steps)

    def cuTensorMapEncodeIm2col(
        self, place, kind, rank, address, sizes, strides, lower, upper, channels, pixels, steps, *how
    ):
        def make(place, rank, address, sizes, strides, steps):
            _check(place, kind, rank, address, sizes, strides, steps, how)
            _require(rank in _CORNER_BITS and len(lower) == len(upper) == rank - 2, "the rank is 3 to 5")
            limit = 1 << _CORNER_BITS[rank] - 1
            _require(all(-limit <= corner < limit for corner in (*lower, *upper)), f"corners {[*lower]} {[*upper]}")
            _require(0 < channels.value * 2 <= 128 and 0 < pixels.value <= 1024, "a box has 64 channels of 1024 pixels")
            box = (channels.value, pixels.value)
            _write(place, rank, address, sizes, strides, box, steps, lower=lower, upper=upper)

        return _status(make, place, rank, address, sizes, strides, steps)


def _status(make, place, rank, address, sizes, strides, steps):
    try:
        _require(
            len(sizes) == rank.value == len(strides) + 1, "as many sizes as axes, and strides of all but the first"
        )
        make(place.value, rank.value, address.value, list(sizes), list(strides), list(steps))
    except Refused:
        return INVALID_VALUE
    return 0


LIBRARY = Library()


def encoded(maps, addresses):
    """The bytes of a launch's maps."""
    if not maps:
        return b""
    with patch.object(tensor_map, "_driver", lambda: LIBRARY):
        return tensor_map.Encoder(maps)(*addresses).tobytes()
