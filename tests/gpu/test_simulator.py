"""The simulator itself: its results, and the mistakes that it has to see."""

import numpy as np
import pytest
from sim.executor import FOLDER, SCHEDULES, SimulationError, execute

from convgrad_cy.gpu.plan import FILTER, SOURCE, TARGET, Launch, Plan

pytestmark = pytest.mark.simulator

schedules = pytest.mark.parametrize("schedule", SCHEDULES)


def run(kernel, arrays, mistake=0, *, grid=1, block=64, shared=0, schedule="ascending"):
    """Run one kernel of examples.cu on its operands. The last one is written."""
    operands = (SOURCE, TARGET) if len(arrays) == 2 else (SOURCE, FILTER, TARGET)
    three = arrays if len(arrays) == 3 else [arrays[0], np.zeros(1), arrays[1]]
    launch = Launch("examples.cu", (), kernel, (grid, 1, 1), (block, 1, 1), shared, operands, (mistake,))
    execute(Plan((launch,)), three, TARGET, schedule, text=lambda name, macros: (FOLDER / name).read_text())


def reverse(mistake, schedule):
    source, target = np.arange(192, dtype=np.float32), np.zeros(192, np.float32)
    run("reverse", [source, target], mistake, grid=3, shared=256, schedule=schedule)
    return np.array_equal(target, source.reshape(3, 64)[:, ::-1].ravel())


@schedules
def test_barrier(schedule):
    assert reverse(0, schedule)


@schedules
def test_missing_barrier_spoils_the_result(schedule):
    assert not reverse(1, schedule)


@schedules
@pytest.mark.parametrize(
    "mistake, message",
    [
        (2, r"threads 0 to 39: waits at __syncthreads of .* line \d+; threads 40 to 63: returned"),
        (3, r"threads 0 to 31: waits at __syncthreads of .*; threads 32 to 63: waits at __syncthreads of"),
        (4, "outside of the 256 bytes of dynamic shared memory"),
        (5, "reverse wrote outside of operand 2"),
        (6, "operand 0 was written, which is only read"),
    ],
)
def test_mistake_is_reported(mistake, message, schedule):
    with pytest.raises(SimulationError, match=message):
        reverse(mistake, schedule)


def pipeline(mistake, schedule="ascending"):
    source, target = np.arange(8 * 64 * 4, dtype=np.float32), np.zeros(64, np.float32)
    pieces = source.reshape(8, 64, 4).copy()
    pieces[-1, :, 2:] = 0
    run("pipeline", [source, target], mistake, shared=3 * 64 * 16, schedule=schedule)
    return np.array_equal(target, np.roll((pieces * [1, 2, 3, 4]).sum((0, 2)), -1))


@schedules
def test_asynchronous_copies(schedule):
    assert pipeline(0, schedule)


@schedules
@pytest.mark.parametrize("mistake", (1, 2), ids=("waits for too few", "reuses a stage that is read"))
def test_race_of_asynchronous_copies(mistake, schedule):
    assert not pipeline(mistake, schedule)


@pytest.mark.parametrize("mistake, message", [(3, "is no multiple of that"), (4, "is not in shared memory")])
def test_wrong_asynchronous_copy(mistake, message):
    with pytest.raises(SimulationError, match=message):
        pipeline(mistake)


def bfloat16_bits(values):
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def multiply(mistake=0, schedule="ascending"):
    random = np.random.default_rng(0)
    a, b, c = (random.integers(-9, 10, shape) for shape in ((16, 16), (16, 8), (16, 8)))
    result = c.astype(np.float32)
    run("multiply", [bfloat16_bits(a), bfloat16_bits(b), result], mistake, block=32, shared=768, schedule=schedule)
    np.testing.assert_array_equal(result, a @ b + c)


@schedules
def test_product_of_a_warp(schedule):
    multiply(schedule=schedule)


@pytest.mark.parametrize("mistake, message", [(1, "needs 32 lanes"), (2, "thread.* 3: waits at __syncwarp")])
def test_product_of_some_lanes(mistake, message):
    with pytest.raises(SimulationError, match=message):
        multiply(mistake)


def lanes():
    """Row g and column t of each lane, in the terms of the PTX ISA."""
    return np.arange(32) // 4, np.arange(32) % 4


def test_half_fragments():
    """float16, m16n8k16: each register must hold two neighbours of a row of A, or of a column of B."""
    random = np.random.default_rng(1)
    a, b, c = (random.integers(-9, 10, shape).astype(np.float16) for shape in ((16, 16), (16, 8), (16, 8)))
    g, t = lanes()
    registers_a = np.stack([a[g + r, 2 * t + k + half] for k in (0, 8) for r in (0, 8) for half in (0, 1)], 1)
    registers_b = np.stack([b[2 * t + k + half, g] for k in (0, 8) for half in (0, 1)], 1)
    where = np.stack([g, g, g + 8, g + 8], 1), np.stack([2 * t, 2 * t + 1] * 2, 1)
    d = c[where].astype(np.float32)
    run("k16_f16", [registers_a, registers_b, d], block=32)
    np.testing.assert_array_equal(d, (a.astype(int) @ b.astype(int) + c)[where])


def test_short_fragments():
    """bfloat16, m16n8k8."""
    random = np.random.default_rng(2)
    a, b = random.integers(-9, 10, (16, 8)), random.integers(-9, 10, (8, 8))
    g, t = lanes()
    registers_a = bfloat16_bits(np.stack([a[g + r, 2 * t + half] for r in (0, 8) for half in (0, 1)], 1))
    registers_b = bfloat16_bits(np.stack([b[2 * t + half, g] for half in (0, 1)], 1))
    d = np.zeros((32, 4), np.float32)
    run("k8_bf16", [registers_a, registers_b, d], block=32)
    np.testing.assert_array_equal(d, (a @ b)[np.stack([g, g, g + 8, g + 8], 1), np.stack([2 * t, 2 * t + 1] * 2, 1)])


def test_double_fragments():
    random = np.random.default_rng(3)
    a, b = random.standard_normal((8, 4)), random.standard_normal((4, 8))
    g, t = lanes()
    d = np.zeros((32, 2))
    run("k4_f64", [a[g, t], b[t, g], d], block=32)
    np.testing.assert_allclose(d, (a @ b)[g[:, None], 2 * t[:, None] + [0, 1]], rtol=1e-14, atol=1e-15)


def test_long_double_fragments():
    random = np.random.default_rng(4)
    a, b = random.standard_normal((16, 16)), random.standard_normal((16, 8))
    g, t = lanes()
    registers_a = np.stack([a[g + 8 * (r % 2), t + 4 * (r // 2)] for r in range(8)], 1)
    registers_b = np.stack([b[t + 4 * r, g] for r in range(4)], 1)
    d = np.zeros((32, 4))
    run("k16_f64", [registers_a, registers_b, d], block=32)
    where = np.stack([g, g, g + 8, g + 8], 1), np.stack([2 * t, 2 * t + 1] * 2, 1)
    np.testing.assert_allclose(d, (a @ b)[where], rtol=1e-13, atol=1e-14)


def test_sums_are_truncated():
    """Sums must be truncated as in tensor cores: bits beyond float32 are dropped, not rounded."""
    g, t = lanes()
    a, b = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    a[:, 0], b[0] = 1, 1 - 2.0**-11
    registers_a = np.stack([a[g + r, 2 * t + k + half] for k in (0, 8) for r in (0, 8) for half in (0, 1)], 1)
    registers_b = np.stack([b[2 * t + k + half, g] for k in (0, 8) for half in (0, 1)], 1)
    for sign in (1, -1):
        d = np.full((32, 4), sign * 2.0**23, np.float32)
        run("k16_f16", [registers_a * np.float16(sign), registers_b, d], block=32)
        np.testing.assert_array_equal(d, sign * 2.0**23)


@schedules
def test_shuffles(schedule):
    source, target = np.arange(64, dtype=np.int32) - 5, np.zeros(256, np.int32)
    run("shuffles", [source, target], schedule=schedule)
    sums, ballots = (
        np.repeat(source.reshape(2, 32).sum(1), 32),
        np.repeat([0xFFFFFFC0, 0xFFFFFFFF], 32).astype(np.uint32),
    )
    np.testing.assert_array_equal(target[:64], sums)
    np.testing.assert_array_equal(target[64:128], sums)
    np.testing.assert_array_equal(target[128:192], source.reshape(2, 2, 16)[:, :, 3].ravel().repeat(16))
    np.testing.assert_array_equal(target[192:], ballots.view(np.int32))


def test_shuffle_with_a_mask_of_other_lanes():
    with pytest.raises(SimulationError, match="mask 0xffff, which is without that lane"):
        run("shuffles", [np.zeros(64, np.int32), np.zeros(256, np.int32)], 1)


@schedules
def test_votes(schedule):
    """All threads must learn whether one voted for it. None may learn the result of the next vote."""
    for wanted in ([0, 1, 0], [1, 0, 64], [64, 0, 0]):
        result = np.full((3, 64), -1, np.int32)
        run("votes", [np.array(wanted, np.int32), result], schedule=schedule)
        np.testing.assert_array_equal(result, np.repeat([[count > 0] for count in wanted], 64, 1))


def test_misaligned_access():
    source, target = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    run("misaligned", [source, target], 4, block=1)
    np.testing.assert_array_equal(target, source[4:])
    with pytest.raises(SimulationError, match="misaligned access"):
        run("misaligned", [source, target], 1, block=1)


def test_wrong_launches():
    source, target = np.zeros(64, np.float32), np.zeros(64, np.float32)
    for sizes in ({"grid": 0}, {"block": 0}, {"block": 1025}):
        with pytest.raises(SimulationError, match="must be within"):
            run("reverse", [source, target], **sizes)
    with pytest.raises(SimulationError, match="not as many pointers"):
        run("reverse", [source, target, target])
