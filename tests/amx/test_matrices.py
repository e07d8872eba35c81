"""pyx/tile/matrix.c on the model of the tile registers: sums in the order of the instructions, nothing beyond them.

Its machine code on a real processor loads no more than one tile for each product.
"""

import ctypes
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from convgrad_cy import _cpu_features

HERE = Path(__file__).parent
PYX = HERE.parents[1] / "pyx"
LEVELS = {"x86_64_v3": "x86-64-v3", "x86_64_v4": "x86-64-v4"}
CARRIED, FRESH = 0, 1
SIDE = 16

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or platform.system() != "Linux" or shutil.which("gcc") is None,
        reason="AMX is of x86-64; the model is compiled by gcc",
    ),
]


class Product(ctypes.Structure):
    """The struct matrix_product."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "columns", "depth", "run")),
        *((name, ctypes.c_void_p) for name in ("a", "a_row", "a_depth", "b", "b_depth", "c", "c_row")),
        ("c_pitch", ctypes.c_int64),
        ("sums", ctypes.c_int),
    )


def compiled(target, *options):
    """Compile matrix.c with gcc and return the target."""
    command = ["gcc", "-std=gnu11", "-O3", "-Wall", "-Wextra", "-Werror", "-fPIC", f"-I{PYX}", *options]
    subprocess.run([*command, PYX / "tile/matrix.c", "-o", target, "-lm"], check=True)
    return target


@pytest.fixture(scope="module", params=LEVELS)
def library(request, tmp_path_factory):
    if request.param not in _cpu_features.supported():
        pytest.skip(f"this machine does not run {request.param}")
    path = tmp_path_factory.mktemp("matrices") / "matrices.so"
    options = ["-shared", f"-march={LEVELS[request.param]}", "-DCONVGRAD_TILE_MODEL", f"-I{HERE}"]
    return ctypes.CDLL(compiled(path, *options))


def even_part(count):
    parts = -(-count // SIDE)
    return -(-count // parts)


def widened(words):
    """The low and the high halves of pairs, as float64."""
    return [half.view(np.float32).astype(np.float64) for half in (words << 16, words & 0xFFFF0000)]


def rounded(sums):
    """float64 rounded to float32. With few magnitudes float64 is exact, so this rounds once, as an FMA does."""
    return sums.astype(np.float32).astype(np.float64)


def reference(a, b, c, run):
    """c + a @ b for words a[r, k] and b[k, j], in the order of TDPBF16PS: each block of a run by itself."""
    sums, block = c.astype(np.float64), even_part(run)
    (a_low, a_high), (b_low, b_high) = widened(a), widened(b)
    for first in range(0, a.shape[1], run):
        for begin in range(first, first + run, block):
            low, high = np.zeros(sums.shape), np.zeros(sums.shape)
            for k in range(begin, min(begin + block, first + run)):
                low = rounded(low + np.outer(a_low[:, k], b_low[k]))
                high = rounded(high + np.outer(a_high[:, k], b_high[k]))
            sums = rounded(sums + rounded(low + high))
    return sums.astype(np.float32)


def drawn_words(rng, *shape):
    """Random pairs of bfloat16 in 32 bits, of magnitudes from a half to two."""
    values = rng.uniform(0.5, 2, (2, *shape)) * rng.choice((-1, 1), (2, *shape))
    low, high = values.astype(np.float32).view(np.uint32) >> 16
    return low | high << 16


def tables_of_a(rng, way, rows, depth, run):
    """Tables of rows and depth, without overlaps, for a way in which a may lie."""
    if way == "rows":  # fprop: positions evenly spaced, pairs of channels adjacent; a tap lies anywhere
        row, taps = np.arange(rows) * (depth + 3), rng.permutation(depth // run) * run
        return row, np.add.outer(taps, np.arange(run)).reshape(-1)
    if way == "jumps":  # the rows of a box lie in several rows of the image
        row, taps = np.arange(rows) * (depth + 3), rng.permutation(depth // run) * run
        return row + np.cumsum(rng.integers(0, 2, rows)) * 5, np.add.outer(taps, np.arange(run)).reshape(-1)
    if way == "channels":  # wgrad: rows are adjacent channels, pairs of positions are apart
        return np.arange(rows), np.cumsum(rng.integers(rows, rows + 9, depth))
    return rng.permutation(rows) * 2, np.arange(depth) * 2 * rows + rng.integers(0, 2, depth)


def call(library, rng, way, rows, columns, runs, run, table, how):
    """Compute a product and compare it with the reference."""
    depth, side = runs * run, SIDE // 2 if columns <= SIDE // 2 else SIDE
    width = -(-columns // side) * side
    a_row, a_depth = (each.astype(np.int32) for each in tables_of_a(rng, way, rows, depth, run))
    places = np.add.outer(a_row, a_depth)
    a = np.full(places.max() + 1, 0x7FC07FC0, np.uint32)  # NaN, wherever the product has no element
    a[places] = drawn_words(rng, rows, depth)
    b = np.full((depth, width + 5), 0x7FC07FC0, np.uint32)
    b[:, :width] = drawn_words(rng, depth, width)
    b_depth = (np.arange(depth) * b.shape[1]).astype(np.int32)
    pitch = width + 7
    c_row = np.arange(rows, dtype=np.int64) * pitch
    if table == "jumps":
        c_row += np.cumsum(rng.integers(0, 2, rows)) * pitch
    c = rng.uniform(1, 2, c_row.max() + pitch).astype(np.float32)
    before, sums = c.copy(), c_row[:, None] + np.arange(width)
    begin = np.zeros((rows, width), np.float32) if how == FRESH else c[sums]
    expected = reference(a[places], b[:, :width], begin, run)
    addresses = [array.ctypes.data for array in (a, a_row, a_depth, b, b_depth, c)]
    product = Product(rows, columns, depth, run, *addresses, c_row.ctypes.data if table else None, pitch, how)
    library.add_matrices(ctypes.byref(product))
    library.release_matrices()
    np.testing.assert_array_equal(c[sums], expected)
    c[sums] = before[sums]
    np.testing.assert_array_equal(c, before)


@pytest.mark.parametrize("how", [CARRIED, FRESH])
@pytest.mark.parametrize("table", [None, "even", "jumps"])
@pytest.mark.parametrize("way", ["rows", "jumps", "channels", "anywhere"])
def test_products(library, way, table, how):
    """Any rows, columns, runs and tables give the sums of the definition, in the order of the instructions."""
    rng = np.random.default_rng(sum(map(ord, f"{way}{table}{how}")))
    for rows, columns, runs, run in ((16, 16, 1, 16), (32, 64, 2, 32), (1, 1, 1, 1), (17, 8, 3, 1), (33, 33, 2, 17)):
        call(library, rng, way, rows, columns, runs, run, table, how)
    for _ in range(8):
        sizes = (int(n) for n in rng.integers((1, 1, 1, 1), (71, 65, 4, 40)))
        call(library, rng, way, *sizes, table, how)


def test_no_products(library):
    """FRESH sums of no products are zeros."""
    c = np.ones(40, np.float32)
    tables = [array.ctypes.data for array in (np.zeros(2, np.int32), np.zeros(1, np.int32))]
    a = np.zeros(1, np.uint32).ctypes.data
    product = Product(2, 8, 0, 0, a, *tables, a, tables[1], c.ctypes.data, None, 10, FRESH)
    library.add_matrices(ctypes.byref(product))
    library.release_matrices()
    expected = np.ones(40, np.float32)
    expected[:8] = expected[10:18] = 0
    np.testing.assert_array_equal(c, expected)


def loops(listing):
    """The instructions of each loop: from the target of a jump backwards to the jump."""
    lines = re.findall(r"^ +([0-9a-f]+):\t(.*)", listing, re.MULTILINE)
    places = {int(address, 16): i for i, (address, _) in enumerate(lines)}
    for i, (address, text) in enumerate(lines):
        jump = re.match(r"j\w+ +([0-9a-f]+)", text)
        if jump and int(jump[1], 16) in places and int(jump[1], 16) < int(address, 16):
            yield [text for _, text in lines[places[int(jump[1], 16)] : i + 1]]


@pytest.mark.parametrize("function, loads", [("add_square", 4), ("add_line", 5)])
def test_tiles_are_loaded_once(function, loads, tmp_path):
    """Four products for four loads: two by two tiles; in wgrad for five, one tile of a by four of b."""
    target = compiled(tmp_path / "matrix.o", "-c", "-march=x86-64-v4", "-mprefer-vector-width=512")
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", target]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    whole = [loop for loop in loops(listing) if sum("tdpbf16ps" in text for text in loop) == 4]
    assert sum("tileload" in text for text in min(whole, key=len)) <= loads
