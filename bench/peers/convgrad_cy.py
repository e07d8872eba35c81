"""This package."""

import os
import threading
import time

import numpy as np

import convgrad_cy as cg
from bench.case import activation_in, filter_in, written_plainly
from bench.peers import ALGORITHM
from convgrad_cy import cpu, dtypes
from convgrad_cy.arrays import NUMPY

TILE_DEPTH = 128
TILES = 1000
COPY_BYTES = 64 << 20


def dtype_of(name):
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def poisoned(shape, dtype):
    """An array that every correct call changes: it holds NaN, or the least integer."""
    array = NUMPY.empty(shape, dtype)
    array[...] = np.iinfo(dtype).min if dtype.kind == "i" else np.nan
    return array


def tensors_of(case, kernel):
    """The names of two arrays and of the result, "x", "w" or "y", for the function that computes a kernel."""
    return {"fprop": "xwy", "dgrad": "ywx", "wgrad": "yxw" if case.transposed else "xyw"}[kernel]


def keywords_of(case, kernel):
    """The keywords of that function, but for ``out``."""
    keywords = {
        "stride": case.stride,
        "padding": case.padding,
        "dilation": case.dilation,
        "groups": case.groups,
        "data_format": case.layout,
        "filter_format": "XIO" if case.channels_last else "OIX",
        "algorithm": os.environ.get(ALGORITHM, "auto"),
    }
    if kernel == "dgrad":
        keywords["output_shape" if case.transposed else "x_shape"] = case.laid_out("x")
    elif kernel == "wgrad":
        keywords["w_shape"] = case.laid_out("w")
    return keywords


def arrays_of(case, kernel, x, w, y):
    """The arrays of that function, aligned to cache lines as in other libraries; the result is poisoned."""
    dtype, tensors = dtype_of(case.dtype), {"x": x, "w": w, "y": y}
    *inputs, result = tensors_of(case, kernel)
    arrays = []
    for name in inputs:
        array = NUMPY.empty(case.laid_out(name), dtype)
        array[...] = (filter_in if name == "w" else activation_in)(case.layout, tensors[name])
        arrays.append(array)
    return *arrays, poisoned(case.laid_out(result), dtype)


class Library:
    #: The result is written into an array that exists before the call.
    allocates_result = False
    #: A refusal of this package is a failure.
    refusals = ()

    def __init__(self, threads):
        self.version = f"{cg.__version__}, {cpu.isa}, {cpu.openmp()}"

    def operation(self, case, kernel, x, w, y):
        first, second, out = arrays_of(case, kernel, x, w, y)
        function, keywords = getattr(cg, case.function(kernel)), keywords_of(case, kernel)
        return lambda: function(first, second, out=out, **keywords)

    def plain(self, case, kernel, result):
        return written_plainly(case.layout, kernel, result)

    def reference(self, case, kernel, x, w, y):
        """The result in float64, for any type of the case."""
        options = {"stride": case.stride, "padding": case.padding, "dilation": case.dilation, "groups": case.groups}
        if kernel == "fprop":
            return cg.conv(x, w, **options)
        if kernel == "dgrad":
            return cg.conv_backward_data(y, w, x.shape, **options)
        return cg.conv_backward_filter(x, y, w.shape, **options)

    def tile(self, dtype, seconds):
        """FLOP per second of the bare register tile on panels in the cache, an upper bound for every kernel."""
        row = next(row for row in dtypes.TABLE if row.name == dtype)
        best, end = 0.0, time.perf_counter() + seconds
        while True:
            start = time.perf_counter()
            flop = cpu.run_tiles(row, TILE_DEPTH, TILES)
            now = time.perf_counter()
            best = max(best, flop / (now - start))
            if now >= end:
                return best

    def copy(self, seconds):
        """Bytes per second, read and written, of a copy in memory by all threads together."""
        pairs = [np.ones((2, COPY_BYTES // 8)) for _ in range(cpu.threads())]
        start = threading.Barrier(len(pairs) + 1)
        end = threading.Barrier(len(pairs) + 1)
        running = True

        def run(pair):
            while True:
                start.wait()
                if not running:
                    return
                np.copyto(pair[0], pair[1])
                end.wait()

        threads = [threading.Thread(target=run, args=(pair,)) for pair in pairs]
        for thread in threads:
            thread.start()
        best, stop = 0.0, time.perf_counter() + seconds
        while time.perf_counter() < stop:
            began = time.perf_counter()
            start.wait()
            end.wait()
            best = max(best, 2 * COPY_BYTES * len(pairs) / (time.perf_counter() - began))
        running = False
        start.wait()
        for thread in threads:
            thread.join()
        return best
