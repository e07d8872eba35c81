"""Winograd's algorithm: exact matrices, values within the accuracy contract, and agreement with direct."""

import re
import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from layouts import INPUTS, OUTPUTS
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    OPERATIONS,
    bits,
    dtype_of,
    real_tensors,
    reference_kernel,
)
from problems import PROBLEMS, parse

from convgrad_cy import calls, cpu, dtypes
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd import tilings
from convgrad_cy.memo import bounded
from convgrad_cy.problem import WGRAD, ConvProblem

PYX = Path(__file__).parents[2] / "pyx" / "winograd"
COOK_TOOM, CODE = (
    runpy.run_path(str(PYX / name)) if PYX.is_dir() else {} for name in ("cook_toom.py", "transform_code.py")
)
POINTS = COOK_TOOM.get("POINTS", {})
FLOAT32 = next(row for row in dtypes.TABLE if row.name == "float32")
HALVES = [name for name in DTYPES if dtype_of(name).itemsize == 2]
BY_KERNEL = {"fprop": "conv", "dgrad": "conv_backward_data", "wgrad": "conv_backward_filter"}
#: The accuracy contract of docs/design.md: error relative to the greatest element of the result.
CONTRACT = 2e-5
#: Half an ulp of a result, relative to it, for the types of results.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 0.0}
SHAPES = [
    *(PROBLEMS[name] for name in ("1d", "2d_same", "2d_valid", "2d_rectangular_kernel", "2d_odd_everything")),
    *(PROBLEMS[name] for name in ("2d_4x4_same_upper", "2d_2x2", "2d_asymmetric", "2d_padding_of_kernel_size")),
    *(PROBLEMS[name] for name in ("2d_groups2", "2d_groups_of_four", "2d_depthwise", "2d_channels65", "2d_depth810")),
    *(PROBLEMS[name] for name in ("2d_blocks", "2d_one_row", "3d_same", "3d_mixed_kernel", "1d_row_beyond_a_box")),
    parse('mb3ic20ih15iw17oc70kh3ph1n"2d_several_strips"'),
    parse('mb1ic300ih6oc260kh3ph1n"2d_filters_inside_tasks"'),
    parse('mb1g2ic36ih9oc260kh3ph1n"2d_groups_with_kept_tiles"'),
    parse('mb2ic17ih9iw23oc33kh5kw3ph2pw0n"2d_5x3"'),
    # Rows shorter than a tile, which reaches over several of them, and rows that end within a tile.
    *(parse(f'mb2ic17ih9iw{row}oc40kh3ph1n"2d_rows_of_{row}"') for row in (1, 2, 3, 7)),
    parse('mb2ic18id7ih6iw2oc20kd3kh3pd1ph1n"3d_rows_of_2"'),
]
#: Problems with strides, dilations, or taps that are cut into pieces.
PHASES = [
    *(PROBLEMS[name] for name in ("2d_4x4_stride2_gan", "2d_dilation2", "2d_dilation_per_axis", "1d_groups")),
    *(PROBLEMS[name] for name in ("1d_vocoder_upsampling", "1d_even_kernel_stride2", "2d_stride2", "2d_dilation16")),
    parse('mb2ic12ih9iw14oc20kh7ph3n"2d_pieces"'),
    parse('mb2ic9iw41oc17kw11dw2pw15n"1d_pieces_dilation3"'),
    parse('mb2g2ic34ih13iw17oc36kh4sh2ph1n"2d_strided_groups"'),
    parse('mb1ic20ih12iw40oc70kh2sh1kw16sw8ph0pw4n"2d_strides_of_pieces"'),
    parse('mb1ic7ih31iw9oc33kh18sh2kw6sw3ph4pw2n"2d_pieces_of_strides"'),
    parse('mb3ic40iw200oc40kw8sw2pw3n"1d_several_boxes"'),
    parse('mb1ic300ih8oc260kh4sh2ph1n"2d_strided_filters_inside_tasks"'),
    parse('mb3ic21ih9iw17oc18kh3dh3ph4n"2d_siblings_of_other_sizes"'),
    parse('mb2ic300ih10oc260kh3dh1ph2n"2d_siblings_filters_inside_tasks"'),
    parse('mb2g2ic34iw45oc24kw7dw2pw9n"1d_siblings_of_pieces"'),
    parse('mb2ic5id9ih8iw7oc6kd3kh4kw6dd1sh2pd2ph1pw3n"3d_everything"'),
]
#: Problems whose wgrad has several slices: blocks and pieces that end early, groups, stride parts, siblings, other
#: ranks.
SLICED = [
    parse('mb2ic40ih60iw58oc160kh3ph1n"2d_unequal_blocks"'),
    parse('mb1ic17ih116iw124oc128kh3ph1n"2d_blocks_of_two_strips"'),
    parse('mb3ic17ih33iw29oc23kh5ph2n"2d_5x5_few_channels"'),
    parse('mb4g2ic38ih40iw54oc50kh3ph1n"2d_groups_in_slices"'),
    parse('mb3ic20ih82iw76oc24kh4sh2ph1n"2d_parts_in_slices"'),
    parse('mb2ic18ih44iw50oc20kh3dh1ph2n"2d_siblings_in_slices"'),
    parse('mb2ic19iw1500oc21kw3pw1n"1d_in_slices"'),
    parse('mb2ic9id9ih26iw30oc11kd3kh3pd1ph1n"3d_in_slices"'),
]
kernels = pytest.mark.parametrize("kernel", BY_KERNEL)
shapes = pytest.mark.parametrize("problem", SHAPES, ids=str)


def call(kernel, problem, tensors, *rest, **keywords):
    keywords = {"algorithm": "winograd", **keywords}
    return OPERATIONS[BY_KERNEL[kernel]].call(problem, tensors, *rest, **keywords)


def assert_close(result, expected, dtype):
    """Assert that a result is within the contract, plus one rounding to a narrower type."""
    largest = abs(expected).max()
    error = abs(result.astype(np.float64) - expected).max()
    assert error <= (CONTRACT + ROUNDING[dtype]) * largest, f"{error / largest:.1e} of the greatest element"


@pytest.mark.checkout
@pytest.mark.parametrize("count", POINTS)
def test_matrices_multiply_polynomials(count):
    """Values at the points, multiplied and interpolated, must be the product's exact coefficients, for each split."""
    random = np.random.default_rng(count)
    points = POINTS[count]
    for taps in range(1, count + 1):
        outputs = count + 1 - taps
        result, filter, source = (
            COOK_TOOM["result_matrix"](points, outputs),
            COOK_TOOM["filter_matrix"](points, taps),
            COOK_TOOM["source_matrix"](points),
        )

        def times(matrix, vector):
            return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]

        def transposed(matrix):
            return [list(column) for column in zip(*matrix, strict=True)]

        g, d, h = (list(map(int, random.integers(-9, 10, size))) for size in (taps, count, outputs))
        products = [a * b for a, b in zip(times(filter, g), times(source, d), strict=True)]
        assert times(result, products) == [sum(d[i + t] * g[t] for t in range(taps)) for i in range(outputs)]
        # The transpose of the identity: the product of the polynomials g and h.
        products = [a * b for a, b in zip(times(filter, g), times(transposed(result), h), strict=True)]
        assert times(transposed(source), products) == [int(c) for c in np.convolve(g, h)]


def evaluated(statements, vector):
    """The values that the C statements compute, in Python: y0, y1 .. from x0, x1 .. ."""
    names = {f"x{j}": value for j, value in enumerate(vector)}
    for statement in statements:
        for assignment in statement.removeprefix("const winograd_vector ").rstrip(";").split(", "):
            name, expression = assignment.split(" = ")
            names[name] = eval(re.sub(r"(\d)f\b", r"\1", expression), {}, dict(names))
    return [names[f"y{i}"] for i in range(sum(name[0] == "y" for name in names))]


@pytest.mark.checkout
@pytest.mark.parametrize("count", POINTS)
def test_code_is_the_matrices(count):
    for length in range(1, count + 1):
        for kind in ("source", "filter", "result"):
            arguments = (POINTS[count],) if kind == "source" else (POINTS[count], length)
            matrix = COOK_TOOM[f"{kind}_matrix"](*arguments)
            columns = [evaluated(CODE["statements"](matrix), row) for row in np.eye(len(matrix[0]))]
            expected = np.array([[float(value) for value in row] for row in matrix])
            np.testing.assert_allclose(np.transpose(columns), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.checkout
def test_points_that_the_choice_knows():
    for table in (tilings.SMALL, tilings.LARGE, tilings.TILES_8):
        assert all(points in POINTS and points >= taps for taps, points in enumerate(table) if taps)


@kernels
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
@shapes
def test_values(kernel, data_format, filter_format, problem):
    tensors = real_tensors(problem, "float32")
    expected = OPERATIONS[BY_KERNEL[kernel]].expected(problem, tensors, data_format, filter_format)
    assert_close(call(kernel, problem, tensors, data_format, filter_format), expected, "float32")


@kernels
@pytest.mark.parametrize("data_format, filter_format", (("NCX", "OIX"), ("NXC", "XIO")))
@pytest.mark.parametrize("problem", PHASES, ids=str)
def test_values_of_phases(kernel, problem, data_format, filter_format):
    tensors = real_tensors(problem, "float32")
    if tilings.tiling_refusal(kernel, problem_of(problem), FLOAT32) is None:
        expected = OPERATIONS[BY_KERNEL[kernel]].expected(problem, tensors, data_format, filter_format)
        assert_close(call(kernel, problem, tensors, data_format, filter_format), expected, "float32")


@pytest.mark.parametrize("data_format, filter_format", (("NCX", "OIX"), ("NXC", "XIO")))
@pytest.mark.parametrize("problem", SLICED, ids=str)
def test_slices(problem, data_format, filter_format):
    """A single element of the last slice, finite or not, must reach the same results as in the direct algorithm."""
    taken = tilings.tiling_of(WGRAD, problem_of(problem), FLOAT32, True, cpu.this_machine().tile)
    assert winograd.choose(WGRAD, problem_of(problem), taken, cpu.this_machine().tile).chosen.slices > 1
    tensors = real_tensors(problem, "float32")
    expected = OPERATIONS[BY_KERNEL["wgrad"]].expected(problem, tensors, data_format, filter_format)
    assert_close(call("wgrad", problem, tensors, data_format, filter_format), expected, "float32")
    for value in (3e4, np.inf):
        dy = np.zeros_like(tensors.y)
        dy.reshape(-1)[-1] = value
        alone = tensors._replace(y=dy)
        direct = call("wgrad", problem, alone, data_format, filter_format, algorithm="direct")
        result = call("wgrad", problem, alone, data_format, filter_format)
        assert (np.isfinite(result) == np.isfinite(direct)).all()
        if np.isfinite(value):
            assert_close(result, direct.astype(np.float64), "float32")


@kernels
def test_phases_are_covered(kernel):
    assert sum(tilings.tiling_refusal(kernel, problem_of(problem), FLOAT32) is None for problem in PHASES) >= 12


@kernels
@pytest.mark.parametrize("dtype", HALVES)
def test_half_types(kernel, dtype):
    """16-bit types must be computed in float32 and rounded once."""
    for problem in SHAPES:
        tensors = real_tensors(problem, dtype)
        assert_close(call(kernel, problem, tensors), reference_kernel(kernel, problem, tensors), dtype)


@kernels
@pytest.mark.parametrize("tiling", tilings.TILINGS, ids=range(len(tilings.TILINGS)))
def test_every_tiling(kernel, tiling, monkeypatch):
    monkeypatch.setattr(tilings, "TILINGS", (tiling,))
    monkeypatch.setattr(calls, "_KNOWN", bounded.Bounded())  # calls with another tiling, before and after
    tilings.decide.cache_clear()
    try:
        for problem in SHAPES:
            tensors = real_tensors(problem, "float32")
            assert_close(call(kernel, problem, tensors), reference_kernel(kernel, problem, tensors), "float32")
    finally:
        tilings.decide.cache_clear()


@kernels
@pytest.mark.parametrize("dtype", ("float32", *HALVES))
def test_layouts_change_no_bit(kernel, dtype):
    for problem in SHAPES:
        tensors = real_tensors(problem, dtype)
        plain = call(kernel, problem, tensors)
        for layout in INPUTS:
            assert bits(call(kernel, problem, tensors, layout=layout)) == bits(plain), f"{problem} {layout.__name__}"
        for layout in OUTPUTS:
            out = layout(np.full(plain.shape, 99, dtype_of(dtype)))
            memory = out if out.base is None else out.base
            before = bits(memory)
            assert bits(call(kernel, problem, tensors, out=out)) == bits(plain), f"{problem} {layout.__name__}"
            out[...] = dtype_of(dtype).type(99)
            assert bits(memory) == before, "memory outside of the elements of out has changed"


def problem_of(problem):
    """The package's problem for a test's problem."""
    rank = len(problem.kernel)

    def triple(values, fill):
        return (fill,) * (3 - rank) + tuple(values)

    return ConvProblem(
        problem.batch,
        problem.groups,
        problem.x_channels // problem.groups,
        problem.y_channels // problem.groups,
        triple(problem.x, 1),
        triple(problem.y, 1),
        triple(problem.kernel, 1),
        triple(problem.stride, 1),
        triple(problem.dilation, 1),
        triple((begin for begin, _ in problem.padding), 0),
    )
