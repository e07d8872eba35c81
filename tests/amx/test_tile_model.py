"""The model of AMX's tile registers: TDPBF16PS as Intel's manual defines it, and an end where a processor raises."""

import ctypes
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
TILES = 8

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles the model"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", HERE / "model_calls.c"]
    subprocess.run([*command, "-o", folder / "program", "-lm"], check=True)
    subprocess.run([*command, "-shared", "-fPIC", "-o", folder / "library.so", "-lm"], check=True)
    return folder


def config(shapes, palette=1):
    """The 64 bytes that LDTILECFG reads; ``shapes``: (rows, bytes of a row) of the first tiles."""
    memory = np.zeros(64, np.uint8)
    memory[0] = palette
    for tile, (rows, row_bytes) in enumerate(shapes):
        memory[16 + 2 * tile : 18 + 2 * tile] = row_bytes % 256, row_bytes // 256
        memory[48 + tile] = rows
    return memory


SUMS, PAIRS, LINES = (3, 20), (3, 8), (2, 20)  # 3 x 5 sums of two pairs
FITTING = config((SUMS, PAIRS, LINES))


def reserved(byte):
    memory = FITTING.copy()
    memory[byte] = 1
    return memory


FAULTS = {
    "not configured": ("z0",),
    "released": (FITTING, "r", "z0"),
    "palette 0": (config((), palette=0), "z0"),
    "palette 2": (config((), palette=2),),
    "17 rows": (config(((17, 64),)),),
    "68 bytes": (config(((16, 68),)),),
    "rows without bytes": (config(((16, 0),)),),
    "ninth tile": (config([(16, 64)] * 9),),
    "reserved byte": (reserved(2),),
    "start row 16": (np.where(np.arange(64) == 1, 16, FITTING).astype(np.uint8),),
    "tile without rows": (FITTING, "z3"),
    "one tile twice": (config((SUMS, (2, 8), (2, 20))), "m011"),
    "other pairs": (config((SUMS, (3, 12), LINES)), "m012"),
    "other rows": (config(((4, 20), PAIRS, LINES)), "m012"),
    "other columns": (config(((3, 16), PAIRS, LINES)), "m012"),
    "half an element": (config(((3, 18), PAIRS, (2, 18))), "m012"),
}


def run(folder, steps):
    texts = [step if isinstance(step, str) else step.tobytes().hex() for step in steps]
    return subprocess.run([folder / "program", *texts], capture_output=True, text=True)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_end_the_process(folder, name):
    done = run(folder, FAULTS[name])
    assert done.returncode == -6 and "tile model: #" in done.stderr


def test_right_uses_do_not(folder):
    assert run(folder, (FITTING, "z0", "m012", config([(16, 64)] * TILES), "z7", "r", FITTING, "m012")).returncode == 0


def round_to_24_bits(value):
    """A rational number with 24 significant bits, rounded to nearest even, for any exponent."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    unit = Fraction(2) ** (exponent - 25)  # with 24 or 25 bits left of it
    while abs(value / unit) >= 1 << 24:
        unit *= 2
    while abs(value / unit) < 1 << 23:
        unit /= 2
    return Fraction(round(value / unit)) * unit


def flushed(value):
    return Fraction(0) if abs(value) < Fraction(2) ** -126 else value


def fma(a, b, c):
    return flushed(round_to_24_bits(a * b + c))


def exact(words):
    """The numbers in float32 bits, with subnormal ones as zero."""
    return [[flushed(Fraction(float(value))) for value in row] for row in words.view(np.float32)]


def defined(sums, pairs, lines):
    """The sums after TDPBF16PS, as rational numbers."""
    a = [exact(np.ascontiguousarray(half)) for half in (pairs << 16, pairs & 0xFFFF0000)]
    b = [exact(np.ascontiguousarray(half)) for half in (lines << 16, lines & 0xFFFF0000)]
    results = exact(sums)
    for m, row in enumerate(results):
        for n, before in enumerate(row):
            half = [Fraction(0), Fraction(0)]
            for k in range(pairs.shape[1]):
                for i in range(2):
                    half[i] = fma(a[i][m][k], b[i][k][n], half[i])
            row[n] = fma(Fraction(1), before, fma(Fraction(1), half[0], half[1]))
    return results


def drawn(rng, shape, exponents):
    """Random float32 with the mantissa of a bfloat16 and exponents in a range."""
    values = rng.integers(128, 256, shape) * 2.0 ** rng.integers(*exponents, shape) / 128
    return (values * rng.choice((-1, 1), shape)).astype(np.float32)


@pytest.mark.parametrize("exponents", [(-3, 4), (-20, 20), (-66, -60), (-70, -50)], ids=str)
def test_product_is_that_of_the_manual(folder, exponents):
    """Sums of any magnitudes are rounded where the definition rounds, and subnormal numbers are zeros."""
    library, rng = ctypes.CDLL(folder / "library.so"), np.random.default_rng(-exponents[0])
    for _ in range(10):
        shapes = (16, 16), (16, 7), (7, 16)
        low, high = ([drawn(rng, shape, exponents).view(np.uint32) for shape in shapes] for _ in range(2))
        sums = np.ldexp(drawn(rng, shapes[0], exponents), min(exponents[1], 0)).astype(np.float32).view(np.uint32)
        pairs, lines = (low[i] >> 16 | high[i] & 0xFFFF0000 for i in (1, 2))
        made = sums.copy()
        settings = config([(rows, 4 * columns) for rows, columns in shapes])
        library.configure(ctypes.c_void_p(settings.ctypes.data))
        for tile, words in enumerate((made, pairs, lines)):
            library.load(tile, ctypes.c_void_p(words.ctypes.data), ctypes.c_int64(words.strides[0]))
        library.multiply(0, 1, 2)
        library.store(0, ctypes.c_void_p(made.ctypes.data), ctypes.c_int64(made.strides[0]))
        assert [[*map(Fraction, map(float, row))] for row in made.view(np.float32)] == defined(sums, pairs, lines)


def test_subnormal_numbers_become_zeros(folder):
    """Operands, sums and results; a result just below the least normal number is flushed if 24 bits keep it there."""
    library = ctypes.CDLL(folder / "library.so")
    least = float(np.finfo(np.float32).tiny)

    def product(c, *factors):
        """The sum of ``c`` and products of low halves; the high halves are zeros."""
        a, b = np.array(factors, np.float32).T.copy().view(np.uint32) >> 16
        words = np.array([c], np.float32).view(np.uint32), a, b
        settings = config([(1, 4), (1, 4 * len(a)), (len(a), 4)])
        library.configure(ctypes.c_void_p(settings.ctypes.data))
        for tile, word in enumerate(words):
            library.load(tile, ctypes.c_void_p(word.ctypes.data), ctypes.c_int64(4))
        library.multiply(0, 1, 2)
        library.store(0, ctypes.c_void_p(words[0].ctypes.data), ctypes.c_int64(4))
        return words[0].view(np.float32)[0]

    assert product(0, (least, 1)) == least
    assert product(0, (least, 0.5)) == 0
    assert product(0, (least / 2, 2)) == 0
    assert product(least / 2, (least, 1)) == least
    assert product(-1.5 * least, (least, 1)) == 0
    assert product(0, (np.inf, 1)) == np.inf and np.isnan(product(0, (np.inf, 0)))
    # The third sum is (1 - 0.75 * 2 ** -24) * least. Subnormal numbers are further apart: least would be the nearest.
    small = 2.0**-24
    assert product(0, (least, 1), (2 * least, small), (-2.75 * least, small)) == 0
    assert product(0, (least, 1), (2 * least, small), (-2.25 * least, small)) == least
