"""The sizes of caches are read from the system. They reach the plans of this machine, but no order of sums."""

from math import prod

import numpy as np
import pytest
from test_plan import unpacked

import convgrad_cy
from convgrad_cy import cpu, dtypes
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.machine.caches import cache_sizes
from convgrad_cy.problem import FPROP, ConvProblem

KIB = 1 << 10


def described(folder, *caches):
    for number, fields in enumerate(caches):
        index = folder / f"index{number}"
        index.mkdir()
        for name, value in zip(("level", "type", "size"), fields, strict=False):
            (index / name).write_text(f"{value}\n")
    return cache_sizes(folder)


def test_sizes_are_read(tmp_path):
    """Sizes of data caches must be read in any order in which the system lists the caches."""
    every = (
        *((3, "Unified", "16384K"), (1, "Instruction", "64K"), (2, "Unified", "2048K")),
        *((1, "Data", "48K"), (4, "Unified", "131072K")),
    )
    assert described(tmp_path, *every) == (48 * KIB, 2048 * KIB, 16384 * KIB)


@pytest.mark.parametrize("caches", ((), ((1, "Data"), (2, "Unified", "much"), ("", "Unified", "8K"))))
def test_common_sizes_where_the_system_does_not_say(tmp_path, caches):
    assert described(tmp_path, *caches) == cache_sizes(tmp_path / "nothing") == (32 * KIB, KIB * KIB, 32 * KIB * KIB)


def test_they_are_the_machines():
    machine = cpu.this_machine()
    assert (machine.l1_bytes, machine.l2_bytes, machine.cache_bytes) == cache_sizes()


@pytest.mark.parametrize("data_format", ("NCX", "NXC"))
def test_the_l1_cache_changes_no_bit(machine_with, data_format):
    """The L1 cache must change no bit of sums of few products, in small boxes and in large ones."""
    many, few = ((2, 40, 24, 64), (2, 1, 24, 64)) if data_format == "NCX" else ((2, 24, 64, 40), (2, 24, 64, 1))
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in (many, (1, 40, 3, 3)))
    found, turned = set(), w.swapaxes(0, 1)
    for l1_bytes in (64, 1 << 20):
        machine_with(l1_bytes=l1_bytes)
        options = {"padding": 1, "data_format": data_format, "algorithm": "direct"}
        results = convgrad_cy.conv(x, w, **options), convgrad_cy.conv_backward_data(x, turned, few, **options)
        found.add(tuple(result.tobytes() for result in results))
    assert len(found) == 1


@pytest.mark.tuning
def test_boxes_of_few_products_follow_the_l1_cache():
    """Boxes of 16 channels and one output must follow the L1 cache. The chunk, the order of the sums, must stay."""
    machine = Machine(6, 256, 64, False, 32 << 20, threads=2)
    problem = ConvProblem(8, 1, 16, 1, (1, 128, 128), (1, 128, 128), (1, 3, 3), pad_begin=(0, 1, 1))
    for l1_bytes, expected in ((8 * KIB, 256), (16 * KIB, 512), (32 * KIB, 1024), (64 * KIB, 1024)):
        here = machine._replace(l1_bytes=l1_bytes)
        _, windows, blocks = unpacked(plan(FPROP, problem, dtypes.TABLE[2], True, here))
        assert blocks.positions_across and blocks.chunk == 16
        assert prod(axis.positions for axis in windows[0]) == expected
