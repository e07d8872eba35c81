"""Arrays of more than 2^31 elements on a real GPU. Their offsets do not fit into 32 bits."""

import numpy as np
import pytest
from on_device import missing, require_gpu

import convgrad_cy as cg

require_gpu()
if missing() is None:
    import cupy

COUNT = 2**31 + 4099
#: Places of the non-zero elements: around the limits of 31 and of 32 bits of bytes and elements.
PLACES = (0, 1, 2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**31 + 1, COUNT - 1)


def reserve(arrays, itemsize):
    """Skip if there is no memory for ``arrays`` arrays of COUNT elements."""
    cupy.get_default_memory_pool().free_all_blocks()
    needed, free = (arrays * COUNT * itemsize) * 1.2 + 2**30, cupy.cuda.Device().mem_info[0]
    if free < needed:
        pytest.skip(f"needs {needed / 2**30:.0f} GiB of GPU memory; {free / 2**30:.0f} are free")


def sparse(dtype, shape):
    array = cupy.zeros(COUNT, dtype)
    for i, place in enumerate(PLACES):
        array[place] = i + 1
    return array.reshape(shape)


def elements(array):
    """The non-zero values, by their place."""
    flat = array.reshape(-1)
    found = {}
    for begin in range(0, flat.size, 2**28):
        (places,) = cupy.nonzero(flat[begin : begin + 2**28])
        found |= {begin + int(place): float(flat[begin + int(place)]) for place in places}
    return found


@pytest.mark.parametrize("dtype", ["float16", "int32"])
@pytest.mark.parametrize("last", [False, True], ids=["NCX", "NXC"])
def test_one_channel(dtype, last):
    reserve(3, np.dtype(dtype).itemsize)
    shape, data_format = ((1, COUNT, 1), "NXC") if last else ((1, 1, COUNT), "NCX")
    x = sparse(dtype, shape)
    w = cupy.asarray([[[2, 3]]], dtype)
    keywords = {"padding": ((0, 1),), "data_format": data_format}
    values = dict(zip(PLACES, range(1, len(PLACES) + 1), strict=True))
    forward, backward = {}, {}
    for place, value in values.items():
        for tap, factor in enumerate((2, 3)):
            if place - tap >= 0:
                forward[place - tap] = forward.get(place - tap, 0) + factor * value
            if place + tap < COUNT:
                backward[place + tap] = backward.get(place + tap, 0) + factor * value
    y = cg.conv(x, w, **keywords)
    assert elements(y) == forward
    del y
    dx = cg.conv_backward_data(x, w, x.shape, **keywords)
    assert elements(dx) == backward
    del dx
    dw = cg.conv_backward_filter(x, x, w.shape, **keywords)
    neighbours = sum(value * values.get(place + 1, 0) for place, value in values.items())
    assert dw.ravel().tolist() == [sum(value**2 for value in values.values()), neighbours]


def test_many_rows():
    """The last rows of a batch with channels, stride and padding must equal the same rows alone."""
    reserve(3, 2)
    n = 2**31 // (64 * 32 * 32) + 2
    x = cupy.zeros((n, 64, 32, 32), np.float16)
    x[-2:] = cupy.random.randint(-2, 3, (2, 64, 32, 32)).astype(np.float16)
    w = cupy.random.randint(-2, 3, (64, 64, 3, 3)).astype(np.float16)
    keywords = {"padding": 1, "stride": 2}
    y = cg.conv(x, w, **keywords)
    assert (y[-2:] == cg.conv(x[-2:], w, **keywords)).all() and not y[:-2].any()
    dy = cupy.zeros_like(y)
    dy[-2:] = cupy.random.randint(-2, 3, y[-2:].shape).astype(np.float16)
    dx = cg.conv_backward_data(dy, w, x.shape, **keywords)
    assert (dx[-2:] == cg.conv_backward_data(dy[-2:], w, x[-2:].shape, **keywords)).all() and not dx[:-2].any()
    dw = cg.conv_backward_filter(x, dy, w.shape, **keywords)
    assert (dw == cg.conv_backward_filter(x[-2:], dy[-2:], w.shape, **keywords)).all()
