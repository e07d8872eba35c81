"""Memory of large calls that is kept for the next call."""

import gc
import sys

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy.cpu.machine.kernels import compiled

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are counted as Linux does")
THREADS = 24  # each with its own memory, more than 32 MiB in all


def pages_of(call):
    """Number of pages that the system gave while a call ran."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_kept():
    """Memory must be kept: otherwise each call would touch new pages. Threads take other tasks each time."""
    rng = np.random.default_rng(0)
    x, dy = (rng.random((8, 56, 56, 128), np.float32) for _ in range(2))
    dw = np.empty((3, 3, 128, 128), np.float32)

    def call():
        formats = {"data_format": "NXC", "filter_format": "XIO"}
        cg.conv_backward_filter(dy, x, dw.shape, padding=1, out=dw, **formats)

    with cg.num_threads(THREADS):
        for _ in range(3):
            call()
        gc.collect()
        kept = min(pages_of(call) for _ in range(10))
        first = dw.copy()
        compiled.release_memory()
        assert pages_of(call) > kept + 2000
    assert (dw == first).all()
