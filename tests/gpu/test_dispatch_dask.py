"""Dask arrays whose blocks are CuPy's: each block runs on the GPU, here the simulator, and stays there."""

import sys

import fake_cupy
import numpy as np
import pytest
from sim.executor import COMPILER

import convgrad_cy as cg

pytestmark = [
    pytest.mark.dask,
    pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator"),
]


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    """The stand-in with the functions that Dask needs of CuPy."""
    fake_cupy.install(monkeypatch)

    def concatenate(arrays, axis=0):
        return fake_cupy.array(np.concatenate([array.get() for array in arrays], axis))

    for name in ("einsum", "tensordot", "take", "lib"):
        monkeypatch.setattr(sys.modules["cupy"], name, None, raising=False)
    monkeypatch.setattr(sys.modules["cupy"], "concatenate", concatenate, raising=False)
    monkeypatch.setattr(
        fake_cupy.ndarray, "__add__", lambda one, other: fake_cupy.array(one.get() + other.get()), raising=False
    )


def lazy(array, chunks):
    """A Dask array with blocks of the stand-in."""
    import dask.array as da
    from dask.array.core import normalize_chunks, slices_from_chunks

    chunks = normalize_chunks(chunks, array.shape)
    keys = np.ndindex(*map(len, chunks))
    name = f"{array.shape}-{array.dtype}-{id(array)}"
    graph = {
        (name, *key): (lambda place: fake_cupy.array(array[place]), place)
        for key, place in zip(keys, slices_from_chunks(chunks), strict=True)
    }
    return da.Array(graph, name, chunks, meta=fake_cupy.array(array[:0]))


def blocks(found):
    """The result in the host's memory; each block must be the stand-in's."""
    parts = []
    for block in found.blocks.ravel():
        parts.append(block.compute(scheduler="sync"))
        assert type(parts[-1]) is type(found._meta) is fake_cupy.ndarray
    return np.concatenate([part.get() for part in parts], -1)


def test_blocks_of_cupy():
    import convgrad_cy.dask as cd

    random = np.random.default_rng(0)
    x, w = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((1, 3, 20), (4, 3, 3)))
    of_x, of_w = lazy(x, (1, 3, 10)), lazy(w, w.shape)
    y = cd.conv(of_x, of_w, padding=1)
    expected = cg.conv(x, w, padding=1)
    np.testing.assert_array_equal(blocks(y), expected)
    dx = cd.conv_backward_data(y, of_w, x.shape, padding=1)
    np.testing.assert_array_equal(blocks(dx), cg.conv_backward_data(expected, w, x.shape, padding=1))
    dw = cd.conv_backward_filter(of_x, y, w.shape, padding=1)
    np.testing.assert_array_equal(blocks(dw), cg.conv_backward_filter(x, expected, w.shape, padding=1))
    assert fake_cupy.launches


def test_libraries_must_agree():
    import convgrad_cy.dask as cd

    x, w = np.zeros((1, 3, 20), np.float32), np.zeros((4, 3, 3), np.float32)
    with pytest.raises(TypeError, match=r"^w must be a cupy\.ndarray like x, not a numpy\.ndarray"):
        cd.conv(lazy(x, x.shape), w)
    with pytest.raises(ValueError, match=r"^algorithm must be 'auto' or 'direct' for a cupy\.ndarray, not 'winograd'"):
        cd.conv(lazy(x, x.shape), lazy(w, w.shape), algorithm="winograd")
