"""Tensor-core kernels: every kind of number, and the problems that suit them. test_variants.py tests every tile.

They compute problems of all sizes here, also those that would not gain.
"""

from functools import partial
from math import prod
from zlib import crc32

import numpy as np
import pytest
from layouts import every_second, negative
from operations import integer_tensors
from problems import PROBLEMS, parse
from sim.executor import SCHEDULES
from simulated import CHANNELS_FIRST, CHANNELS_LAST, FORMATS, H200, OPERATIONS, Case, task_without_memory
from tensor_cores import KINDS, TILES_ALONE, case_of, changed, kernels, kinds, run

from convgrad_cy.gpu import mma
from convgrad_cy.gpu.plan import SOURCE, Device

pytestmark = pytest.mark.simulator

A100 = Device(arch=80, processors=108, shared_bytes=163 << 10)
#: Problems larger than any tile in rows, columns and depth, with a remainder in each.
LARGE = {
    "fprop": parse('mb1ic44ih19oc136kh3ph1n"large"'),
    "dgrad": parse('mb1ic136ih38oc44kh3sh2ph1n"large_stride2"'),
    "wgrad": parse('mb1ic23ih19oc136kh3ph1n"large_filter"'),
}


@pytest.mark.slow
@kinds
@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS.values() if 0 < p.batch * p.groups * prod(p.y) < 50_000], ids=str
)
def test_integers(kind, problem):
    """Every problem must be exact, in a format that depends on problem, kernel and type."""
    tensors, results = integer_tensors(problem, KINDS[kind][0])
    for kernel in OPERATIONS:
        choice = crc32(f"{problem} {kernel} {kind}".encode())
        case = case_of(kernel, problem, tensors, kind, formats=FORMATS[choice % 3], device=(H200, A100)[choice % 2])
        np.testing.assert_array_equal(run(case, schedule=SCHEDULES[choice % 3]), results[kernel], err_msg=kernel)


@kernels
@kinds
def test_sum_of_several_stages(kernel, kind):
    """A sum of more stages than are in flight must be exact, with groups and a stride. Every change runs this part."""
    problem = parse('mb2g2ic36ih7oc40kh3sh2ph1n"grouped"')
    tensors, results = integer_tensors(problem, KINDS[kind][0])
    for formats in (CHANNELS_FIRST, CHANNELS_LAST):
        case = case_of(kernel, problem, tensors, kind, formats=formats)
        np.testing.assert_array_equal(run(case), results[kernel])


@pytest.mark.tuning
@pytest.mark.parametrize("processors, splits", [(1, {1, 2}), (40, range(4, 20)), (10_000, range(20, 30))])
def test_splits(processors, splits):
    """wgrad of 722 positions, in 23 stages, must be exact in one part, in several and in one for each stage."""
    problem = parse('mb2ic8ih19oc16kh3ph1n"positions_722"')
    tensors, results = integer_tensors(problem, "bfloat16")
    case = Case("wgrad", problem, tensors, device=H200._replace(processors=processors))
    (split,) = (launch.grid[1] for launch in mma.launches(case.task).launches if launch.kernel == "wgrad")
    assert split in splits
    np.testing.assert_array_equal(run(case), results["wgrad"])


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
def test_few_tiles_are_split(kernel, kind):
    """Few positions with a long sum must be split, also with a stride whose phases have other stages, or no tap."""
    long, short = ("i", "o") if kernel == "fprop" else ("o", "i")
    for name in (
        f'mb1{long}c400ih6{short}c72kh3sh2ph1n"split"',
        f'mb1{long}c1544ih5{short}c70kh1sh2n"split_1x1_stride2"',
    ):
        problem = parse(name)
        tensors, results = integer_tensors(problem, KINDS[kind][0])
        case = case_of(kernel, problem, tensors, kind, formats=CHANNELS_LAST)
        *_, last = mma.launches(case.task).launches
        assert last.kernel == "reduce"
        np.testing.assert_array_equal(run(case), results[kernel], err_msg=name)


@kernels
@pytest.mark.parametrize("layout", (negative, every_second), ids=lambda layout: layout.__name__)
def test_strides(kernel, layout):
    """Tensors with gaps or negative strides must be exact. The first is read in place, the other is packed."""
    problem = parse('mb2ic16ih5oc24kh3ph1n"strides"')
    tensors, results = integer_tensors(problem, "bfloat16")
    case = Case(kernel, problem, tensors, layout=layout, formats=CHANNELS_LAST)
    np.testing.assert_array_equal(run(case), results[kernel])


@pytest.mark.parametrize("stride, kernel", [(5, 9), (5, 3), (6, 11)])
def test_more_phases_than_a_launch_takes(stride, kernel):
    problem = parse(f'mb1ic8ih23iw24oc8kh{kernel}sh{stride}ph1n"stride{stride}_kernel{kernel}"')
    tensors, results = integer_tensors(problem, "bfloat16")
    np.testing.assert_array_equal(run(Case("dgrad", problem, tensors)), results["dgrad"])


def test_phases_visit_every_x_once():
    for problem in PROBLEMS.values():
        if problem.batch:
            task = task_without_memory("dgrad", problem, "bfloat16")
            walks = zip(task.problem.complete_backward_phases(), task.problem.x, strict=True)
            for walk, x in walks:
                visited = [phase.target_begin + i * phase.target_step for phase in walk for i in range(phase.positions)]
                assert sorted(visited) == list(range(x)), problem


# ---- operands ----


def packs(task):
    return {launch.pointers[0] for launch in mma.launches(task).launches if launch.kernel == "pack"}


def test_operands_are_read_where_they_are_if_they_can_be():
    sixteen, odd = parse('mb2ic16ih5oc16kh3ph1n"sixteen"'), parse('mb2ic12ih5oc16kh3ph1n"twelve"')
    assert packs(task_without_memory("fprop", sixteen, "bfloat16", formats=CHANNELS_LAST)) == set()
    assert packs(task_without_memory("fprop", sixteen, "float64", formats=CHANNELS_LAST)) == set()
    assert packs(task_without_memory("fprop", odd, "float64", formats=CHANNELS_LAST)) == set()
    assert packs(task_without_memory("fprop", odd, "bfloat16", formats=CHANNELS_LAST)) == {0, 1}
    assert packs(task_without_memory("dgrad", sixteen, "bfloat16", formats=("NXC", "XIO"))) == set()
    assert packs(task_without_memory("dgrad", sixteen, "bfloat16", formats=CHANNELS_LAST)) == {1}
    assert packs(task_without_memory("wgrad", sixteen, "bfloat16", formats=CHANNELS_LAST)) == set()
    assert packs(task_without_memory("wgrad", sixteen, "bfloat16")) == {0, 2}
    assert packs(task_without_memory("fprop", sixteen, "float32", formats=CHANNELS_LAST)) == {0, 1}
    task = task_without_memory("fprop", sixteen, "bfloat16", formats=CHANNELS_LAST)
    assert packs(task._replace(source=task.source._replace(aligned=False))) == {SOURCE}


def test_both_gradients_pack_dy_alike():
    """Both gradients must pack dy alike, so that it is packed once for both."""
    packed = []
    for kernel, number in (("dgrad", 0), ("wgrad", 2)):
        task = task_without_memory(kernel, parse('mb2ic16ih5oc20kh3sh2ph1n"both"'), "float32")
        (launch,) = (one for one in mma.launches(task).launches if one.kernel == "pack" and one.pointers[0] == number)
        packed.append(launch._replace(pointers=()))
    assert packed[0] == packed[1]


# ---- which problems ----

RESNET = parse('mb32ic64ih56oc64kh3ph1n"resnet"')
STEM = parse('mb32ic3ih224oc64kh7sh2ph3n"stem"')


@kernels
@kinds
def test_suits(kernel, kind):
    dtype, precision = KINDS[kind]
    suits = partial(task_without_memory, kernel, precision=precision)
    assert mma.suits(suits(RESNET, dtype))
    assert not mma.suits(suits(RESNET, dtype, device=H200._replace(arch=75)))
    # On sm_86, six products for one take as long as other units need, and float64 takes far longer.
    if kind != "float32-high":
        assert mma.suits(suits(RESNET, dtype, device=H200._replace(arch=86))) == (kind != "float64")
    assert not mma.suits(suits(PROBLEMS["2d_same"], dtype))
    assert not mma.suits(suits(parse('mb32g64ic64ih56oc64kh3ph1n"depthwise"'), dtype))
    assert mma.suits(suits(parse('mb32g4ic256ih28oc256kh3ph1n"groups"'), dtype))


@kernels
def test_does_not_suit_other_numbers(kernel):
    assert not mma.suits(task_without_memory(kernel, RESNET, "int32"))
    assert not mma.suits(task_without_memory(kernel, RESNET, "float32", precision="ieee"))


def test_leaves_strides_of_many_phases():
    assert mma.can(task_without_memory("dgrad", parse('mb2ic64iw4096oc64kw16sw8pw4n"vocoder"'), "bfloat16"))
    assert not mma.can(task_without_memory("dgrad", parse('mb2ic64ih512oc64kh40sh40n"stride40"'), "bfloat16"))


@kernels
def test_beyond_32_bits(kernel):
    """More positions than 32 bits count must be left to others. More elements must not."""
    many = parse('mb40000ic16ih256oc16kh1n"positions"')
    assert not mma.can(task_without_memory(kernel, many, "bfloat16"))
    assert not mma.suits(task_without_memory(kernel, many, "bfloat16"))
    large = parse('mb2000ic64ih256oc64kh1n"elements"')
    assert mma.suits(task_without_memory(kernel, large, "bfloat16", formats=CHANNELS_LAST))
    assert not mma.suits(task_without_memory(kernel, large, "float32"))  # for packed copies of 24 GB and more


def test_variants_are_all_that_is_chosen():
    known = {(source, kernel, macros) for source, kernel, macros in mma.variants()}
    for kind, (dtype, precision) in KINDS.items():
        for kernel in OPERATIONS:
            for problem in (RESNET, STEM, *LARGE.values(), PROBLEMS["2d_same"]):
                for device in (H200, A100, Device(86, 84, 99 << 10), Device(89, 128, 99 << 10)):
                    task = task_without_memory(kernel, problem, dtype, precision, device=device)
                    for launch in mma.launches(task).launches:
                        if launch.source != "reduce.cu":
                            assert (launch.source, launch.kernel, launch.macros) in known, kind


# ---- the tests see mistakes ----


@pytest.mark.parametrize("schedule", SCHEDULES[:2])
@pytest.mark.parametrize("kernel", ("fprop", "wgrad"))
def test_mistakes_are_seen(kernel, schedule):
    problem = parse('mb2ic72ih9oc72kh3ph1n"mistakes"')
    tensors, results = integer_tensors(problem, "bfloat16")
    case = Case(kernel, problem, tensors, device=A100)
    for old, new in (
        ("wait_copies<STAGES - 2>();", "wait_copies<STAGES - 1>();"),
        ("__syncthreads(); /* all threads see", "/* all threads see"),
    ):
        result = run(case, schedule=schedule, text=changed(old, new, TILES_ALONE))
        assert not np.array_equal(result, results[kernel]), old
