"""Arrays that lie right before, or right behind, memory that nobody may touch."""

import ctypes
import mmap

import numpy as np

#: Bytes next to an array, on its open side, that nobody may write.
BAND = 256
SENTINEL = 0xA5


def _span(array):
    """Bytes before the first element of an array, and bytes from it on, in which its elements lie."""
    steps = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    return -sum(step for step in steps if step < 0), array.itemsize + sum(step for step in steps if step > 0)


class Memory:
    """``size`` bytes between two pages that cannot be read or written."""

    def __init__(self, size):
        page = mmap.PAGESIZE
        self.size = -(-size // page) * page
        self.map = mmap.mmap(-1, self.size + 2 * page)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map)) + page
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for place in (self.address - page, self.address + self.size):
            if protect(place, page, 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def like(self, array, at_end):
        """An array of equal shape, strides and values, at the end or the begin of the memory.

        The sentinel surrounds it.
        """
        before, behind = _span(array)
        size = before + behind
        place = self.size - size if at_end else 0
        copy = np.ndarray(array.shape, array.dtype, self.map, mmap.PAGESIZE + place + before, array.strides)
        first, last = max(0, place - BAND), min(self.size, place + size + BAND)
        self.around = np.frombuffer(self.map, np.uint8, last - first, mmap.PAGESIZE + first)
        self.around[...] = SENTINEL
        copy[...] = array
        return copy

    def is_clean_around(self, array):
        """Whether the sentinel is still around the last array. The array is overwritten with it."""
        array[...] = np.frombuffer(bytes([SENTINEL]) * array.itemsize, array.dtype)[0]
        return bool((self.around == SENTINEL).all())
