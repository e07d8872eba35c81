"""Graphs are lazy and small, blocks share the threads, and chunks may be CuPy's."""

import pickle
from threading import Barrier, Lock

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy import api
from convgrad_cy._repeat import has_openmp

pytestmark = pytest.mark.dask

W = np.ones((16, 16, 3, 3, 3), np.float32)


def gradients(x):
    """The three results for an input with a filter of 3 x 3 x 3 taps."""
    import convgrad_cy.dask as cd

    y = cd.conv(x, W, padding=1)
    return y, cd.conv_backward_data(y, W, x.shape, padding=1), cd.conv_backward_filter(x, y, W.shape, padding=1)


def volume(images, edge, chunk):
    import dask.array as da

    chunks = (1, 16, chunk, chunk, chunk)
    return da.zeros((images, 16, edge, edge, edge), dtype="float32", chunks=chunks)


@pytest.mark.parametrize("images, edge, chunk", [(8192, 64, 64), (16, 512, 64)])
def test_a_graph_is_small(images, edge, chunk):
    """8192 blocks, which are 128 GiB, must have graphs of at most 1 MB."""
    sizes = [len(pickle.dumps(result.__dask_graph__())) for result in gradients(volume(images, edge, chunk))]
    assert max(sizes) <= 1_000_000, sizes


def test_nothing_is_allocated_for_the_whole():
    """The algorithm must be chosen without an array of the whole: this one would have an exabyte."""
    y, dx, dw = gradients(volume(1, 2**18, 2**17))
    assert y.nbytes > 2**59 and dx.shape == y.shape and dw.shape == W.shape


def test_results_are_lazy(monkeypatch):
    monkeypatch.setattr(api, "conv", None)  # must not be called
    monkeypatch.setattr(api, "conv_backward_filter", None)
    y, _, dw = gradients(volume(2, 8, 8))
    assert (y.dtype, dw.dtype) == (np.float32, np.float32)


def test_blocks_share_the_threads(monkeypatch):
    """Two blocks that run at the same time must not have all threads each."""
    import dask.array as da

    import convgrad_cy.dask as cd

    both, lock, seen = Barrier(2, timeout=60), Lock(), []
    compute = api.conv

    def conv(*arguments, **keywords):
        with lock:
            seen.append(cg.get_num_threads())
        both.wait()
        return compute(*arguments, **keywords)

    monkeypatch.setattr(api, "conv", conv)
    x, w = da.zeros((2, 3, 8), dtype="float32", chunks=(1, 3, 8)), np.ones((4, 3, 3), np.float32)
    cg.set_num_threads(8)
    try:
        cd.conv(x, w).compute(scheduler="threads", num_workers=2)
    finally:
        cg.set_num_threads(None)
    assert sorted(seen) == ([4, 8] if has_openmp() else [1, 1])


def test_a_lone_block_has_all_threads(monkeypatch):
    import dask.array as da

    import convgrad_cy.dask as cd

    seen = []
    monkeypatch.setattr(api, "conv", lambda x, w, **keywords: seen.append(cg.get_num_threads()) or x[:, :1])
    cg.set_num_threads(8)
    try:
        cd.conv(da.zeros((3, 1, 8), dtype="float32", chunks=(1, 1, 8)), np.ones((1, 1, 1), "f4")).compute(
            scheduler="sync"
        )
        expected = cg.get_num_threads()
    finally:
        cg.set_num_threads(None)
    assert seen == [expected] * 3
