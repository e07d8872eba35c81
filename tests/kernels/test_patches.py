"""Data gradients computed as patches: kernels as large as their stride, with few channels."""

from dataclasses import replace

import numpy as np
import pytest
from checks import check_formats, check_layouts
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    OPERATIONS,
    assert_exact,
    bits,
    integer_tensors,
    real_tensors,
)
from problems import parse

from convgrad_cy import cpu
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine.tuning import WIDE
from convgrad_cy.cpu.plan.pipeline import Sequence
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.cpu.rewrites import folded_taps, overlaps
from convgrad_cy.dtypes import TABLE
from convgrad_cy.problem import FPROP, ConvProblem, lift

FLOAT32 = TABLE[2]
#: Problems that gain: one to three axes, kernels of unequal sides, one position of y.
PROBLEMS = [
    parse(text)
    for text in (
        'mb8ic3ih96oc64oh24kh4sh4n"few_elements"',
        'mb4ic3ih64iw96oc70oh8ow6kh8kw16sh8sw16n"unequal"',
        'mb40ic5id4ih4iw4oc460od1oh1ow1kd4kh4kw4n"one_position"',
        'mb8ic2iw16384oc36ow128kw128sw128n"row"',
        'mb4ic3id16ih32iw32oc80od2oh4ow8kd8kh8kw4sd8sh8sw4n"3d"',
    )
]
GRADIENTS = {name: OPERATIONS[name] for name in ("conv_backward_data", "conv_transpose")}

problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)
gradients = pytest.mark.parametrize("operation", GRADIENTS.values(), ids=list(GRADIENTS))


def conv_problem(problem):
    stride = [s if y > 1 else 1 for s, y in zip(problem.stride, problem.y, strict=True)]
    axes = (lift(part, 1) for part in (problem.x, problem.y, problem.kernel, stride))
    return ConvProblem(problem.batch, 1, problem.x_channels, problem.y_channels, *axes)


FEW = WIDE._replace(least_patch_products=16)


@pytest.fixture(autouse=True)
def few_outputs(machine_with):
    """Accept problems with few output channels, too: they take the tests less time."""
    machine_with(own_tuning=cpu.this_machine().tuning._replace(least_patch_products=16))


@pytest.fixture
def products(monkeypatch):
    """Collect the gradients that are computed with copies."""
    counted, run = [], Sequence.run

    def counting(self, *arrays):
        counted.append(self)
        run(self, *arrays)

    monkeypatch.setattr(Sequence, "run", counting)
    return counted


@pytest.mark.tuning
@problems
def test_pays(problem):
    problem = conv_problem(problem)
    assert overlaps.problem_refusal(problem, FEW) is None
    for other in (
        replace(problem, x=tuple(x + 1 for x in problem.x)),
        replace(problem, pad_begin=(0, 0, 1)),
        replace(problem, stride=tuple(s + 1 for s in problem.stride), y=tuple(y + 1 for y in problem.y)),
        replace(problem, dilation=(1, 1, 2)),
        replace(problem, x_channels=32),
        replace(problem, y_channels=16),
        replace(problem, x=problem.y, kernel=(1, 1, 1), stride=(1, 1, 1)),
        replace(problem, batch=0),
        replace(problem, groups=2),
        *([replace(problem, stride=tuple(max(1, s - 1) for s in problem.stride))] if max(problem.y) > 1 else []),
    ):
        assert overlaps.problem_refusal(other, FEW) is not None or not overlaps.has_patches(other)


@problems
@gradients
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_exact(problem, operation, data_format, filter_format, products):
    dtypes = DTYPES if data_format == "NCX" else ("float32", "float64")
    for dtype in dtypes:
        tensors, _ = integer_tensors(problem, dtype)
        result = operation.call(problem, tensors, data_format, filter_format)
        assert_exact(result, operation.expected(problem, tensors, data_format, filter_format), dtype)
    assert len(products) == len(dtypes)


@pytest.mark.parametrize("data_format", DATA_FORMATS)
def test_long_sums_of_few_channels(data_format):
    """A box must have one channel at a time, and therefore more positions, although it takes more with fewer taps."""
    problem, operation = parse('mb1ic3ih192oc17oh6kh32sh32n"1024_taps"'), OPERATIONS["conv"]
    blocks = plan(FPROP, conv_problem(problem), FLOAT32, data_format == "NCX", cpu.this_machine()).blocks
    assert Blocks(*blocks).chunk == 1
    tensors, _ = integer_tensors(problem, "float32")
    result = operation.call(problem, tensors, data_format, "OIX", algorithm="direct")
    assert_exact(result, operation.expected(problem, tensors, data_format, "OIX"), "float32")


@problems
def test_layouts(problem):
    check_layouts(OPERATIONS["conv_backward_data"], problem, threads=(2,))
    check_formats(OPERATIONS["conv_backward_data"], problem, threads=(2,))


def test_calls_are_remembered(products):
    """The second call must find the first one's plan, and compute with its own arrays."""
    problem = PROBLEMS[1]
    first, second = (real_tensors(problem, "float32", seed) for seed in (1, 2))
    operation = OPERATIONS["conv_backward_data"]
    results = [operation.call(problem, tensors) for tensors in (first, second, first)]
    assert bits(results[0]) == bits(results[2]) != bits(results[1])
    assert products[0] is products[1] is products[2]
    for tensors, result in zip((first, second), results, strict=False):
        np.testing.assert_allclose(result, operation.expected(problem, tensors), rtol=0, atol=1e-3)


#: Problems whose adjacent taps are channels. dgrad has one with several chunks of channels of y. wgrad has one
#: position, with one channel of y, with many taps, or with more images than one box may have.
JOINED = [
    parse(text)
    for text in (
        'mb2ic32ih12oc700oh6kh2sh2n"2x2"',
        'mb3ic24ih4oc600oh1kh4n"one_position"',
        'mb2ic20ih9iw8oc30oh7ow4kh3kw2sh1sw2n"one_axis"',
        'mb4ic8ih9iw12oc500oh7ow6kh3kw2sh1sw2n"one_axis_in_chunks"',
        'mb2g2ic40ih8oc40oh4kh2sh2n"groups"',
        'mb1ic18id4ih6iw8oc24od2oh3ow4kd2kh2kw2sd2sh2sw2n"3d"',
        'mb16ic70ih4oc1oh1kh4n"one_output"',
        'mb64ic40ih16oc20oh1kh16n"many_taps"',
        'mb300ic40iw6oc20ow1kw6n"many_images"',
    )
]


@pytest.mark.parametrize("problem", JOINED, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ("conv_backward_data", "conv_backward_filter"))
def test_taps_as_channels(problem, dtype, name):
    operation = OPERATIONS[name]
    integers, reals = integer_tensors(problem, dtype)[0], real_tensors(problem, dtype)
    plain = operation.call(problem, reals)
    for data_format in DATA_FORMATS:
        for filter_format in FILTER_FORMATS:
            formats = data_format, filter_format
            assert_exact(
                operation.call(problem, integers, *formats), operation.expected(problem, integers, *formats), dtype
            )
            other = operation.call(problem, reals, *formats)
            if operation.makes == "w" and filter_format == "XIO":
                other = np.moveaxis(other, (-1, -2), (0, 1))
            elif operation.makes == "x" and data_format == "NXC":
                other = np.moveaxis(other, -1, 1)
            assert bits(other) == bits(plain)


@pytest.mark.tuning
@pytest.mark.parametrize("problem", JOINED, ids=str)
def test_which_are_dense(problem):
    assert folded_taps.folds_in_wgrad(conv_problem(problem)) == (
        problem.name in ("one_position", "one_output", "many_taps")
    )


@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_image_is_dense(dtype, data_format, filter_format):
    """With one image and one position, a filter of any size must count as dense: a sum has one product."""
    problem = parse('mb1ic3ih150oc4oh1kh150n"one_image"')
    assert folded_taps.folds_in_wgrad(conv_problem(problem))
    tensors, operation = real_tensors(problem, dtype), OPERATIONS["conv_backward_filter"]
    x, _, y = (each.astype(np.float64) for each in tensors)
    expected = (y.reshape(-1, 1, 1, 1) * x).astype(tensors[0].dtype)
    result = operation.call(problem, tensors, data_format, filter_format)
    if filter_format == "XIO":
        result = np.moveaxis(result, (-1, -2), (0, 1))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "name, data_format, filter_format, kernel, channels",
    [
        ("2x2", "NXC", "XIO", (1, 2, 1), 64),
        ("2x2", "NCX", "OIX", (1, 2, 2), 32),
        ("2x2", "NXC", "OIX", (1, 2, 2), 32),
        ("one_position", "NXC", "XIO", (1, 1, 1), 384),
        ("one_position", "NCX", "OIX", (1, 1, 1), 384),
        ("one_axis", "NXC", "XIO", (1, 3, 1), 40),
        ("3d", "NXC", "XIO", (2, 2, 1), 36),
    ],
)
def test_which_taps_are_channels(name, data_format, filter_format, kernel, channels):
    (problem,) = (problem for problem in JOINED if problem.name == name)
    x, w = np.zeros(problem.x_shape, np.float32), np.zeros(problem.w_shape, np.float32)
    if data_format == "NXC":
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    if filter_format == "XIO":
        w = np.moveaxis(np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2))), (-1, -2), (0, 1))
    x = x.reshape(x.shape[0], 1, x.shape[1], *lift(problem.x, 1))
    filter = w.reshape(1, *w.shape[:2], *lift(problem.kernel, 1)).swapaxes(1, 2)
    joined, joined_filter, joined_x = folded_taps.taps_as_channels(conv_problem(problem), filter, x)
    assert joined.kernel == kernel and joined.x_channels == channels
    assert joined_x.shape == (x.shape[0], 1, channels, *joined.x)
    assert joined_filter.shape == (1, channels, problem.y_channels, *kernel)
    assert np.shares_memory(joined_x, x) and np.shares_memory(joined_filter, w)
