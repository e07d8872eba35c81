"""Matrix products without tensor cores: their reads and stores, tiles and splits, NaN and infinity.

test_variants.py tests every tile.
"""

import re
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np
import nvrtc
import pytest
from nonfinite import check_nonfinite
from operations import FLOATS, integer_tensors
from problems import PROBLEMS, parse
from simulated import CHANNELS_FIRST, CHANNELS_LAST, H200, OPERATIONS, Case, task_without_memory

from convgrad_cy import dtypes
from convgrad_cy.gpu import module, simt, simt_tiles

simulator = pytest.mark.simulator
kernels = pytest.mark.parametrize("kernel", OPERATIONS)


def macros_of(plan):
    return dict(plan.launches[0].macros)


#: A problem, its formats, and the macros A_BY_DEPTH, A_VECTOR, B_BY_DEPTH, B_VECTOR, C_BY_ROW, TAPS_INNER.
READS = {
    "channels_last": (
        'mb2ic16ih6oc16kh3ph1n"whole"',
        CHANNELS_LAST,
        {"fprop": (1, 4, 1, 4, 0, 0), "dgrad": (1, 4, 0, 4, 0, 0), "wgrad": (0, 4, 0, 4, 1, 0)},
    ),
    "channels_last_odd": (
        'mb2ic15ih6oc17kh3ph1n"odd"',
        CHANNELS_LAST,
        {"fprop": (1, 1, 1, 1, 0, 0), "dgrad": (1, 1, 0, 1, 0, 0), "wgrad": (0, 1, 0, 1, 1, 0)},
    ),
    "channels_first": (
        'mb2ic16ih6oc16kh3ph1n"first"',
        CHANNELS_FIRST,
        {"fprop": (0, 1, 1, 1, 1, 1), "dgrad": (0, 1, 1, 1, 1, 1), "wgrad": (1, 1, 1, 1, 1, 1)},
    ),
    "pointwise_in_rows": (
        'mb2ic16ih6oc16kh1n"pointwise"',
        CHANNELS_FIRST,
        {"fprop": (0, 4, 1, 4, 1, 0), "dgrad": (0, 4, 0, 4, 1, 0), "wgrad": (1, 4, 1, 4, 1, 0)},
    ),
}


@simulator
@pytest.mark.parametrize("name", READS)
@kernels
def test_reads(kernel, name):
    """Neighbouring threads must read neighbours, as whole vectors if they are aligned, and else as elements."""
    text, formats, expected = READS[name]
    problem = parse(text)
    task = task_without_memory(kernel, problem, "float32", formats=formats)
    macros = macros_of(simt.launches(task))
    names = ("A_BY_DEPTH", "A_VECTOR", "B_BY_DEPTH", "B_VECTOR", "C_BY_ROW", "TAPS_INNER")
    assert tuple(int(macros[macro]) for macro in names) == expected[kernel]
    moved = task._replace(source=task.source._replace(aligned=False))
    assert macros_of(simt.launches(moved))["A_VECTOR"] == "1"
    tensors, results = integer_tensors(problem, "float32")
    case = Case(kernel, problem, tensors, formats=formats)
    np.testing.assert_array_equal(case.run(simt.launches(case.task)), results[kernel])


@simulator
@pytest.mark.slow
@kernels
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name",
    ("1d_even_kernel_stride2", "2d_asymmetric", "2d_padding_beyond_input", "2d_stride2_dilation3", "2d_depth1200"),
)
def test_nonfinite(name, dtype, kernel):
    for formats in (CHANNELS_FIRST, CHANNELS_LAST):
        check_nonfinite(simt, kernel, PROBLEMS[name], dtype, formats=formats)


@simulator
def test_nonfinite_in_splits(monkeypatch):
    """A split must form its own NaN again, and no other split's terms."""
    monkeypatch.setattr(simt, "choice", lambda *_: (simt_tiles.TILES[4][-1], 3))
    for kernel, name in (("wgrad", "2d_sixteen"), ("fprop", "2d_channels65")):
        check_nonfinite(simt, kernel, PROBLEMS[name], "float32")


@pytest.mark.parametrize("processors", (1, 40, 132, 10_000))
def test_splits_cover_the_depth_once(processors):
    """Splits must be whole steps, and none empty. If blocks are many, there must be one split."""
    float32 = dtypes.lookup(np.dtype(np.float32))
    for rows, columns, depth in ((64, 64, 1), (64, 64, 1000), (576, 64, 100_352), (49, 512, 4608), (10**6, 64, 576)):
        extents = simt_tiles.Extents(1, 1, rows, columns, depth)
        tile, splits = simt_tiles.choice(extents, float32, processors)
        size = extents.split_depth(tile, splits)
        assert size % tile.depth == 0
        assert (splits - 1) * size < depth <= splits * size
        if processors == 132:
            assert (splits > 1) == (rows * columns < 10**6 and depth > 1), (rows, columns, depth)
        assert simt_tiles.choice(extents._replace(walks=2), float32, processors)[1] == 1


@pytest.mark.tuning
def test_large_products_take_large_tiles():
    """The model must take the largest tile if all processors have blocks, and never more than twice the work."""
    float32 = dtypes.lookup(np.dtype(np.float32))
    cost = partial(simt_tiles.choice, dtype=float32, processors=132)
    assert cost(simt_tiles.Extents(1, 1, 10**6, 1024, 1024))[0].rows == 128
    assert cost(simt_tiles.Extents(1, 1, 10**6, 32, 1024))[0].columns == 32
    assert prod(cost(simt_tiles.Extents(1, 1, 100, 32, 64))[0][:2]) <= 2 * 128 * 32


def test_counts_beyond_32_bits_are_refused():
    problem = parse('mb2ic8ih9oc4kh3ph1n"x"')
    task = task_without_memory("fprop", problem, "float32")
    assert simt.suits(task)
    for huge in ({"batch": 2**31}, {"pad_begin": (0, 2**30, 0)}):
        assert not simt.suits(task._replace(problem=replace(task.problem, **huge)))


@pytest.mark.skipif(nvrtc.disassembler() is None or nvrtc.why_missing() is not None, reason="NVRTC is not installed")
@pytest.mark.slow
@kernels
def test_instructions(kernel):
    """Whole vectors must be read from memory, and moved to and from shared memory."""
    problem = parse('mb32ic64ih56oc64kh3ph1n"layer"')
    for arch in ("sm_75", "sm_90"):
        launch = simt.launches(
            task_without_memory(kernel, problem, "float32", formats=CHANNELS_LAST, device=H200)
        ).launches[0]
        found = nvrtc.sass(nvrtc.compile(module.text(launch.source, launch.macros), arch)[0])
        tile = [int(dict(launch.macros)[name]) for name in ("THREAD_ROWS", "THREAD_COLUMNS", "TILE_DEPTH")]
        assert found.count("FFMA") >= prod(tile)
        assert re.search(r"LDG\.E\.128", found) and re.search(r"LDS.*\.128", found)
