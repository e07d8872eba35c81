"""dgrad with a stride, its phases joined in tasks: rows, boxes and phases of any length, in each format and type."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from problems import Problem

from convgrad_cy import cpu
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.dtypes import TABLE
from convgrad_cy.problem import DGRAD, ConvProblem, conv_size

FORMATS = (("NCX", "OIX"), ("NXC", "XIO"), ("NXC", "OIX"))
DGRAD_OF = OPERATIONS["conv_backward_data"]
#: bfloat16 also with "auto", which multiplies pairs of channels if the processor can.
PAIRS = [("bfloat16", "auto")] if "bfloat16" in DTYPES and cpu.this_machine().multiplies_pairs else []
ways = pytest.mark.parametrize("dtype, algorithm", [("float32", "direct"), *PAIRS])


def strided(x, taps, stride, ins=3, outs=6, groups=1, pad=1):
    """``ins`` channels of x and ``outs`` of y in each group."""
    ones = (1, 1, 1)
    padding = tuple((min(pad, t - 1),) * 2 for t in taps)
    y = tuple(map(conv_size, x, taps, stride, ones, padding))
    name = f"{'x'.join(map(str, (*x, *taps, *stride)))}_{ins}_{outs}_{groups}"
    return Problem(name, 2, groups, groups * ins, groups * outs, x, y, taps, stride, ones, padding)


#: Problems whose tiles run across the channels, with wide vectors: rows of different lengths, two chunks, three groups.
MANY_CHANNELS = [
    strided((1, 13, 37), (1, 5, 4), (1, 2, 3), ins=40, outs=24),
    strided((1, 1, 900), (1, 1, 16), (1, 1, 8), ins=64, outs=20),
    strided((5, 6, 17), (3, 3, 3), (2, 2, 2), ins=150, outs=12),
    strided((1, 30, 31), (1, 3, 3), (1, 2, 2), ins=24, outs=200),
    strided((1, 14, 14), (1, 3, 3), (1, 2, 2), ins=16, outs=16, groups=3),
    strided((1, 13, 14), (1, 3, 3), (1, 2, 2), ins=16, outs=21, groups=2),  # channels that are no whole pairs
]
PROBLEMS = [
    *(strided((1, 9, row), (1, 3, 3), (1, 2, 2)) for row in (1, 2, 15, 16, 33, 70)),
    *(strided((1, 8, 64), (1, taps, taps), (1, 2, 2)) for taps in (2, 4, 7)),
    *(strided((1, 1, row), (1, 1, 16), (1, 1, stride)) for row in (63, 300) for stride in (3, 8)),
    strided((1, 40, 600), (1, 3, 4), (1, 1, 2)),  # several boxes along a row
    strided((5, 6, 17), (3, 3, 3), (2, 2, 2)),
    strided((1, 15, 56), (1, 3, 3), (1, 2, 2), ins=8, outs=8, groups=3),
    strided((1, 14, 64), (1, 3, 3), (1, 2, 2), ins=21, outs=40, pad=0),
    strided((1, 14, 64), (1, 5, 5), (1, 2, 2), outs=150),  # chunks of channels
    strided((1, 1, 16), (1, 1, 4), (1, 1, 2), ins=40, outs=24),  # tasks pack the filter, of every second tap
    *MANY_CHANNELS,
]


@pytest.mark.tuning
def test_phases_are_joined():
    problem = ConvProblem(8, 1, 3, 64, (1, 64, 64), (1, 32, 32), (1, 4, 4), (1, 2, 2), (1, 1, 1), (0, 1, 1))
    for adjacent in (False, True):
        made = plan(DGRAD, problem, TABLE[2], adjacent, Machine(6, 64, 32, False, 32 << 20, 2))
        assert Blocks(*made.blocks.tolist()).phases == 4 == len(made.steps)


@pytest.mark.tuning
@pytest.mark.parametrize("channels, expected", [(12, False), (6, True)])
def test_groups_store_whole_lines(channels, expected):
    """With channels last, groups that fill most of a vector must store rows of several groups, not of positions."""
    sizes = (1, 28, 28), (1, 14, 14), (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1)
    problem = ConvProblem(8, 16, channels, channels, *sizes)
    made = plan(DGRAD, problem, TABLE[2], False, Machine(6, 256, 64, True, 32 << 20, 2))
    assert Blocks(*made.blocks.tolist()).positions_across == expected


@pytest.mark.tuning
def test_phases_of_many_channels_are_joined_where_positions_are_adjacent():
    problem = ConvProblem(8, 1, 64, 128, (1, 1, 4096), (1, 1, 2048), (1, 1, 4), (1, 1, 2), pad_begin=(0, 0, 1))
    machine = Machine(6, 256, 64, True, 32 << 20, 2)
    plans = [plan(DGRAD, problem, TABLE[2], adjacent, machine) for adjacent in (True, False)]
    first, last = (Blocks(*made.blocks.tolist()) for made in plans)
    assert first.phases == 2 and last.phases == 1
    assert not first.positions_across and first.chunk == last.chunk


@pytest.mark.tuning
@pytest.mark.parametrize("adjacent, expected", ((True, (4, 4)), (False, (8, 4))))
def test_phases_of_pairs_are_joined(adjacent, expected):
    """The phases of bfloat16 must be joined as in other types: each layout stores whole rows or whole cache lines."""
    problem = ConvProblem(8, 32, 16, 16, (1, 28, 28), (1, 14, 14), (1, 3, 3), (1, 2, 2), pad_begin=(0, 1, 1))
    blocks = Blocks(*plan(DGRAD, problem, TABLE[1], adjacent, Machine(6, 256, 64, True, 32 << 20, 2)).blocks.tolist())
    assert (blocks.groups, blocks.phases) == expected and blocks.pairs


def test_phases_keep_their_chunk():
    """Both layouts must have the chunk of channels last, although only channels last packs the filters of phases."""
    kernel, stride = (5, 5, 1), (1, 2, 1)
    problem = ConvProblem(2, 1, 60, 175, (1, 10, 27), (7, 8, 29), kernel, stride, pad_begin=kernel)
    machine = Machine(6, 256, 64, True, 32 << 20, 2)
    plans = [plan(DGRAD, problem, TABLE[0], adjacent, machine) for adjacent in (False, True)]
    far, near = (Blocks(*made.blocks.tolist()) for made in plans)
    assert far.packs and not near.packs
    assert far.chunk == near.chunk < 175


@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_exact(formats, problem):
    for dtype, algorithm in (*((dtype, "direct") for dtype in DTYPES), *PAIRS):
        tensors, _ = integer_tensors(problem, dtype)
        result = DGRAD_OF.call(problem, tensors, *formats, algorithm=algorithm)
        assert_exact(result, DGRAD_OF.expected(problem, tensors, *formats), dtype)


@ways
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_layouts_have_the_same_bits(problem, dtype, algorithm):
    tensors = real_tensors(problem, dtype)
    first, last = (
        DGRAD_OF.call(problem, tensors, data_format, "OIX", layout=np.ascontiguousarray, algorithm=algorithm)
        for data_format in ("NCX", "NXC")
    )
    assert bits(first) == bits(np.ascontiguousarray(last.transpose(0, 4, 1, 2, 3)))


@ways
@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
@pytest.mark.parametrize("problem", [*PROBLEMS[2:9:3], *MANY_CHANNELS], ids=str)
def test_infinity_stays_where_it_belongs(formats, problem, dtype, algorithm):
    """An infinite tap that meets padding must not reach the result."""
    tensors, _ = integer_tensors(problem, dtype)
    w = tensors.w.copy()
    w.flat[::7] = np.inf
    tensors = tensors._replace(w=w, y=np.ones_like(tensors.y))
    result = DGRAD_OF.call(problem, tensors, *formats, algorithm=algorithm)
    assert_exact(result, DGRAD_OF.expected(problem, tensors, *formats), dtype)
