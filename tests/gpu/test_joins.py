"""Groups and stride phases that are joined to one product: each way to join, also if it does not gain."""

from unittest.mock import patch

import numpy as np
import pytest
from nonfinite import nonfinite_tensors
from operations import Tensors, assert_same, dtype_of, integer_tensors, reference_kernel
from problems import parse
from sim.executor import SCHEDULES
from simulated import CHANNELS_FIRST, CHANNELS_LAST, FORMATS, H200, Case, task_without_memory
from tensor_cores import KINDS, case_of, kinds, run

from convgrad_cy.gpu import joins, mma, module
from convgrad_cy.gpu.joins import ALONE, Join

simulator = pytest.mark.simulator
GROUPS = {
    "eight": parse('mb1g8ic64ih9oc64kh3ph1n"eight_a_group"'),
    "four": parse('mb2g6ic24ih7oc24kh3sh2ph1n"four_a_group"'),
    "odd": parse('mb1g4ic12ih8oc20kh3kw2dh2ph2n"odd"'),
    "one_axis": parse('mb2g4ic64iw21oc32kw3pw1n"one_axis"'),
}
PHASES = {
    "stem": parse('mb1ic3ih18oc16kh7sh2ph3n"stem"'),
    "transposed": parse('mb2ic3ih12iw8oc24kh4sh2ph1n"transposed"'),
    "unreached": parse('mb1ic5ih12oc9kh2sh3n"unreached"'),
    "dilated": parse('mb1ic2ih12iw9oc8kh3sh2sw3dh2dw2ph1n"dilated"'),
    "one_of_two": parse('mb1ic4ih12iw9oc8kh3sh2sw1ph1n"one_of_two"'),
    "three_axes": parse('mb1ic3id6ih4iw8oc8kd3kh2kw3sh2sw2sd2pd1pw1n"three_axes"'),
    "groups": parse('mb1g4ic8ih8oc16kh3sh2ph1n"groups"'),
}
CASES = [
    *((name, problem, kernel) for name, problem in GROUPS.items() for kernel in ("fprop", "dgrad", "wgrad")),
    *((name, problem, "dgrad") for name, problem in PHASES.items()),
]
cases = pytest.mark.parametrize("problem, kernel", [pytest.param(*c[1:], id="-".join((c[0], c[2]))) for c in CASES])


def joined(task):
    """All existing ways to join."""
    return [join for join in joins.joins(task) if join != ALONE]


def taking(join):
    return patch.object(mma, "joins", lambda task: [join])


def test_what_can_be_joined():
    def of(kernel, name, **others):
        return joins.joins(task_without_memory(kernel, parse(name), "bfloat16", **others))

    groups = 'mb2g8ic128ih12oc64kh3sh2ph1n"groups"'
    assert of("fprop", groups) == [ALONE, Join(2), Join(4)]
    phases = (1, 2, 2)
    assert of("dgrad", groups) == [ALONE, Join(1, phases), Join(2), Join(4)]
    assert of("wgrad", groups) == [ALONE, Join(2), Join(4)]
    assert of("dgrad", 'mb2ic3ih12iw13oc64kh3sh2ph1n"odd"') == [ALONE]
    assert of("dgrad", 'mb2ic3ih12oc64kh3ph1n"unit_stride"') == [ALONE]
    assert of("dgrad", 'mb2ic3ih12oc64kh3sh2ph1n"phases"') == [ALONE, Join(1, phases)]


@simulator
@cases
def test_integers(problem, kernel):
    """Each join must be exact in one format, also with sums that are split among blocks."""
    tensors, results = integer_tensors(problem, "bfloat16")
    task = Case(kernel, problem, tensors).task
    assert joined(task)
    for i, join in enumerate(joined(task)):
        case = Case(kernel, problem, tensors, formats=FORMATS[i % 3])
        with taking(join):
            result = run(case, schedule=SCHEDULES[i % 3])
        np.testing.assert_array_equal(result, results[kernel], err_msg=str(join))


@simulator
@pytest.mark.slow
@kinds
@cases
def test_all_kinds(kind, problem, kernel):
    tensors, results = integer_tensors(problem, KINDS[kind][0])
    for formats in FORMATS:
        case = case_of(kernel, problem, tensors, kind, formats=formats)
        for join in joined(case.task):
            with taking(join):
                result = run(case)
            np.testing.assert_array_equal(result, results[kernel], err_msg=f"{join} {formats}")


@simulator
@pytest.mark.slow
@pytest.mark.parametrize("kind", ("bfloat16", "float32-high", "float64"))
@cases
def test_what_is_not_finite(kind, problem, kernel):
    """NaN and infinity must reach the results of their own group, and none through the space between terms."""
    dtype, precision = KINDS[kind]
    for tensors in nonfinite_tensors(kernel, problem, dtype):
        case = Case(kernel, problem, tensors, precision=precision, formats=CHANNELS_LAST)
        expected = reference_kernel(kernel, problem, tensors).astype(dtype_of(dtype)).astype(np.float64)
        for join in joined(case.task):
            with taking(join):
                result = case.run(mma.launches(case.task))
            assert_same(result.astype(np.float64), expected)


@simulator
def test_infinity_of_a_neighbour():
    """No other group may notice that one group is infinite, and a term of -0 must not count as a hole."""
    problem = GROUPS["four"]
    for kernel, name in (("fprop", "x"), ("dgrad", "y"), ("wgrad", "x")):
        tensors, _ = integer_tensors(problem, "bfloat16")
        spoiled = getattr(tensors, name).copy()
        spoiled[:, 4:8] = np.inf
        weights = tensors.w.copy()
        weights[4:6] = -0.0
        tensors = tensors._replace(**{name: spoiled, "w": weights})
        case = Case(kernel, problem, tensors, formats=CHANNELS_LAST)
        expected = reference_kernel(kernel, problem, tensors)
        assert np.isnan(expected).any()
        for join in joined(case.task):
            with taking(join):
                assert_same(case.run(mma.launches(case.task)).astype(np.float64), expected.astype(np.float64))


@simulator
@pytest.mark.slow
@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
def test_sums_are_split(kernel):
    problem = parse('mb1g2ic64ih4oc64kh9sh2ph4n"split"')
    tensors, results = integer_tensors(problem, "bfloat16")
    case = Case(kernel, problem, tensors, formats=CHANNELS_LAST)
    for join in joined(case.task):
        with taking(join):
            assert mma.launches(case.task).launches[-1].kernel == "reduce"
            np.testing.assert_array_equal(run(case), results[kernel])


@pytest.mark.parametrize(
    "kernel, name, join",
    [
        ("dgrad", 'mb128ic3ih224oc64kh7sh2ph3n"resnet50_stem"', Join(1, (1, 2, 2))),
        ("dgrad", 'mb128g32ic256ih28oc256kh3ph1n"resnext50_8_a_group"', Join(4)),
        ("wgrad", 'mb128g32ic256ih28oc256kh3ph1n"resnext50_8_a_group"', Join(8)),
        ("dgrad", 'mb128ic128ih56oc128kh3sh2ph1n"wide"', ALONE),
    ],
)
def test_the_model_joins(kernel, name, join):
    task = task_without_memory(kernel, parse(name), "bfloat16", formats=CHANNELS_LAST, device=H200)
    plan = mma.launches(task)
    with taking(join):
        assert mma.launches(task) == plan


# ---- the tests see mistakes ----


@simulator
@pytest.mark.parametrize(
    "kernel, name, old, new",
    [
        ("dgrad", "stem", "int(tap[i]) * int(axis.step);", "int(tap[i]);"),
        ("dgrad", "stem", "offset += column % phases * ", "offset += 0 * "),
        ("fprop", "eight", "int(member * unsigned(arguments.ins));", "0;"),
        ("wgrad", "eight", "row * unsigned(arguments.group_of_row) >> 16;", "0;"),
        ("wgrad", "odd", "if (channel + 1 < channels)", "if (false)"),
    ],
)
def test_mistakes_are_seen(kernel, name, old, new):
    problem = {**GROUPS, **PHASES}[name]
    tensors, results = integer_tensors(problem, "bfloat16")
    case = Case(kernel, problem, tensors, formats=CHANNELS_LAST)
    replaced = []

    def wrong(source, macros=()):
        right = module.text(source, macros)
        replaced.extend([source] * right.count(old))
        return right.replace(old, new)

    with taking(joined(case.task)[-1]):
        assert not np.array_equal(case.run(mma.launches(case.task), text=wrong).astype(np.float64), results[kernel])
    assert len(replaced) == 1


@simulator
@pytest.mark.parametrize(
    "old, new",
    [("!arguments.holes || !is_hole(b[(c + k) * step])", "true"), ("planes[0] = packed();", ";")],
    ids=("holes are terms", "-0 is a hole"),
)
def test_a_wrong_hole_is_seen(old, new):
    problem = GROUPS["four"]
    tensors, _ = integer_tensors(problem, "bfloat16")
    x, w = tensors.x.copy(), tensors.w.copy()
    x[:, 4:8] = np.inf
    w[4:6] = -0.0
    tensors = Tensors(x, w, tensors.y)
    case = Case("fprop", problem, tensors, formats=CHANNELS_FIRST)
    expected = reference_kernel("fprop", problem, tensors).astype(np.float64)
    with taking(joined(case.task)[-1]):
        result = case.run(mma.launches(case.task), text=lambda *key: module.text(*key).replace(old, new))
    assert not np.array_equal(result.astype(np.float64), expected, equal_nan=True)
