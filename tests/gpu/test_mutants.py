"""The value tests see mistakes: kernels without a barrier or a bounds check, with a laxer wait, with a wrong index.

Each mistake replaces a part of the CUDA text, which has to occur exactly once.
"""

from typing import NamedTuple

import numpy as np
import pytest
from gpus import DEVICES, H200
from operations import integer_tensors
from problems import PROBLEMS, parse
from sim.executor import SCHEDULES, SimulationError
from simulated import CHANNELS_FIRST, CHANNELS_LAST, Case

from convgrad_cy.gpu import depthwise, gather, mma, module, simt

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

BARRIER, NONE = "__syncthreads();", ""


class Mutant(NamedTuple):
    """A wrong kernel, and a problem for which the family launches it."""

    family: object
    kernel: str
    problem: str
    old: str
    new: str
    dtype: str = "float32"
    formats: tuple = CHANNELS_LAST
    device: object = H200


def without_barrier(family, kernel, problem, place, **others):
    """A mutant without the barrier at ``place``, where it is written as {barrier}."""
    old, new = (place.format(barrier=barrier) for barrier in (BARRIER, NONE))
    return Mutant(family, kernel, problem, old, new, **others)


UNREACHED = 'mb1ic5ih12oc9kh2sh3n"unreached"'
OCTETS = 'mb4g8ic64ih14oc64kh3ph1n"octets"'
LARGE = 'mb2ic40ih13oc44kh3ph1n"large"'
ROWS = 'mb2ic35ih12oc75kh3ph1n"rows"'
GROUPS = "2d_depthwise_many"
BFLOAT = {"dtype": "bfloat16"}
MUTANTS = {
    "gather, sum without a barrier": without_barrier(
        gather, "wgrad", "2d_positions_1445", "{barrier}\n            if (thread < half)"
    ),
    "gather, wgrad of what is in the padding": Mutant(
        gather, "wgrad", "2d_same", "if (conv_inside(&walk[i], place))", "if (true)"
    ),
    "gather, correlation with the padding": Mutant(
        gather, "fprop", "2d_same", "if (!conv_inside(walk[2], width))", "if (false)"
    ),
    "gather, the wrong tap": Mutant(gather, "dgrad", "2d_same", "conv_filter(walk[1], h)", "conv_filter(walk[1], v)"),
    "simt, table without a barrier": without_barrier(
        simt, "fprop", LARGE, "tabulate(next);\n                {barrier}"
    ),
    "simt, tile without a barrier": without_barrier(simt, "fprop", LARGE, "fill(next);\n        {barrier}"),
    "simt, result without a barrier": without_barrier(
        simt, "dgrad", LARGE, "= sums[pass * CHUNK + i][j];\n        {barrier}"
    ),
    "simt, padding is read": Mutant(simt, "fprop", LARGE, "if (inside(part.size, row, at))", "if (true)"),
    "simt, swapped rows": Mutant(
        simt, "wgrad", LARGE, "left[i / CHUNK].of[i % CHUNK]", "left[i / CHUNK].of[CHUNK - 1 - i % CHUNK]"
    ),
    "mma, stage without a barrier": without_barrier(mma, "fprop", LARGE, "{barrier} /* all threads see", **BFLOAT),
    "mma, laxer wait": Mutant(
        mma, "fprop", LARGE, "wait_copies<STAGES - 2>();", "wait_copies<STAGES - 1>();", **BFLOAT
    ),
    "mma wgrad, laxer wait": Mutant(
        mma, "wgrad", LARGE, "wait_copies<STAGES - 2>();", "wait_copies<STAGES - 1>();", **BFLOAT
    ),
    "mma, padding is read": Mutant(mma, "fprop", LARGE, "inside >> i & 1);", "1);", **BFLOAT),
    "mma wgrad, padding is read": Mutant(mma, "wgrad", LARGE, "column_inside[i] &= ", "column_inside[i] |= ", **BFLOAT),
    "mma, swapped fragments": Mutant(
        mma, "dgrad", LARGE, "(columns ? high : low) * 8", "(columns ? low : high) * 8", device=DEVICES[80], **BFLOAT
    ),
    "mma, swapped halves of depth": Mutant(
        mma, "wgrad", LARGE, "(columns ? low : high) * 8", "(columns ? high : low) * 8", dtype="float16"
    ),
    "mma wgrad, another group's sums": Mutant(
        mma, "wgrad", OCTETS, "- group * channels", "", device=DEVICES[80], **BFLOAT
    ),
    "spread, a tap too many": Mutant(mma, "dgrad", UNREACHED, "&& number < axis.size", "", **BFLOAT),
    "mma, swapped doubles": Mutant(
        mma, "fprop", LARGE, "columns ? i / 2 : i % 2,", "columns ? i % 2 : i / 2,", dtype="float64"
    ),
    "pack without a barrier": without_barrier(
        mma, "fprop", LARGE, "{barrier}\n    for (int i = threadIdx.x; i < (1 << BITS) / CHUNK", formats=CHANNELS_FIRST
    ),
    "transpose without a barrier": without_barrier(
        mma, "fprop", ROWS, "{barrier}\n    const int64_t padded_left", formats=CHANNELS_FIRST, **BFLOAT
    ),
    "transpose, a chunk elsewhere": Mutant(
        mma, "fprop", ROWS, "chunk_place(row + k, word / 4)", "chunk_place(row, word / 4)", "bfloat16", CHANNELS_FIRST
    ),
    "transpose, channels beyond the last": Mutant(
        mma,
        "fprop",
        ROWS,
        "row < rows_left ? columns_left - column : 0",
        "columns_left - column",
        "bfloat16",
        CHANNELS_FIRST,
    ),
    "reduce without a barrier": without_barrier(
        mma, "wgrad", LARGE, "{barrier}\n    if (thread >= rows * WIDTH)", formats=CHANNELS_FIRST
    ),
    "depthwise, filter without a barrier": without_barrier(
        depthwise, "fprop", GROUPS, "{barrier}\n\n    const int block_channel"
    ),
    "depthwise wgrad, sums without a barrier": without_barrier(
        depthwise, "wgrad", GROUPS, "exchanged[i][thread] = sums[round + i];\n        {barrier}"
    ),
}


def is_seen(mutant, case, expected, schedule, text):
    try:
        result = case.run(mutant.family.launches(case.task), schedule, 1, text)
    except SimulationError:
        return True
    return not np.array_equal(result.astype(np.float64), expected)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_seen(name):
    mutant = MUTANTS[name]
    problem = PROBLEMS[mutant.problem] if mutant.problem in PROBLEMS else parse(mutant.problem)
    tensors, results = integer_tensors(problem, mutant.dtype)
    case = Case(mutant.kernel, problem, tensors, formats=mutant.formats, device=mutant.device)
    replaced = set()

    def wrong(source, macros):
        right = module.text(source, macros)
        assert right.count(mutant.old) <= 1, f"there more than once in {source}"
        if mutant.old in right:
            replaced.add(source)
        return right.replace(mutant.old, mutant.new)

    seen = [is_seen(mutant, case, results[mutant.kernel], schedule, wrong) for schedule in SCHEDULES]
    assert replaced, "no kernel that was launched has this text"
    assert any(seen)
    assert not any(is_seen(mutant, case, results[mutant.kernel], schedule, module.text) for schedule in SCHEDULES)
