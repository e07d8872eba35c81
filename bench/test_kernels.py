"""The rows of ``python -m bench`` for pytest-benchmark: python -m pytest bench --benchmark-only [-k NAME].

They compare this package with itself over commits (``--benchmark-autosave``, ``--benchmark-compare``). ``python -m
bench`` compares libraries. pytest does not collect this file by default.
"""

import zlib

import numpy as np
import pytest

from bench import verify
from bench.peers.convgrad_cy import Library
from bench.suites import rows
from bench.worker import relative_error

ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.case.name}-{row.kernel}-{row.case.layout}")
def test_kernel(benchmark, row):
    case = row.case
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    operands = [verify.draw(shape, case.dtype, rng) for shape in (case.x, case.w, case.y)]
    library = Library(threads=None)
    call = library.operation(case, row.kernel, *operands)
    error = relative_error(library.plain(case, row.kernel, call()), library.reference(case, row.kernel, *operands))
    assert verify.fault(error, case.dtype) is None
    benchmark.extra_info["flop"] = case.flop
    benchmark.group = f"{row.layer.suite} {row.kernel} {case.layout}"
    benchmark(call)
