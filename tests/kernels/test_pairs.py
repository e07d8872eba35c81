"""bfloat16 multiplied in pairs, as algorithm="auto" may do on some processors: exact but for subnormal numbers."""

import numpy as np
import pytest
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    OPERATIONS,
    Tensors,
    assert_exact,
    bits,
    dtype_of,
    integer_tensors,
    real_tensors,
)
from problems import PROBLEMS, parse

from convgrad_cy import cpu
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.dtypes import TABLE
from convgrad_cy.problem import FPROP, ConvProblem

pytestmark = [
    pytest.mark.skipif(not cpu.this_machine().multiplies_pairs, reason="this processor or build multiplies no pairs"),
    pytest.mark.skipif("bfloat16" not in DTYPES, reason="ml_dtypes is not installed"),
]
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))


@pytest.fixture(autouse=True)
def direct_alone(machine_with):
    """Make Winograd's algorithm decline, since it is not exact."""
    machine_with(own_tuning=cpu.this_machine().tuning._replace(least_tiled_products=1 << 60))


def test_are_planned():
    problem = ConvProblem(1, 1, 20, 70, (1, 8, 8), (1, 8, 8), (1, 3, 3), pad_begin=(0, 1, 1))
    bfloat16, other = (Blocks(*plan(FPROP, problem, TABLE[i], False, cpu.this_machine()).blocks) for i in (1, 2))
    assert bfloat16.pairs and not other.pairs


@operations
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_exact(operation, problem):
    tensors, results = integer_tensors(problem, "bfloat16")
    assert_exact(operation.call(problem, tensors, algorithm="auto"), results[operation.kernel], "bfloat16")


@operations
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
@pytest.mark.parametrize(
    "text",
    (
        "ic7ih9oc70kh3ph1",
        "ic66ih11oc33kh3sh2ph1",
        "ic5ih7oc80kh1",
        "ic34ih8oc66kh1",
        "ic34ih8oc66kh3ph1",
        "ic6ih12oc70kh9ph4",
    ),
)
def test_formats(operation, data_format, filter_format, text):
    """Odd channels, odd rows, whose last pair has one element, adjacent even rows, and many taps must be exact."""
    problem = parse(f'mb2{text}n"paired"')
    tensors, _ = integer_tensors(problem, "bfloat16")
    expected = operation.expected(problem, tensors, data_format, filter_format)
    assert_exact(operation.call(problem, tensors, data_format, filter_format, algorithm="auto"), expected, "bfloat16")


@operations
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
@pytest.mark.parametrize("text", ("ic34ih8oc66kh3ph1", "ic34ih8oc66kh1"))
def test_arrays_between_words(operation, filter_format, text):
    """Arrays that begin at an odd element must be exact, although none of their pairs is a word of memory."""
    problem = parse(f'mb2{text}n"paired"')
    tensors, _ = integer_tensors(problem, "bfloat16")
    expected = operation.expected(problem, tensors, "NCX", filter_format)

    def shifted(array):
        memory = np.empty(array.size + 2, array.dtype)
        made = memory[1 + (memory.ctypes.data // 2) % 2 :][: array.size].reshape(array.shape)
        made[...] = array
        return made

    result = operation.call(problem, tensors, "NCX", filter_format, layout=shifted, algorithm="auto")
    assert_exact(result, expected, "bfloat16")


@operations
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("text", ("ic10ih9oc20kh3", "ic20ih9oc10kh3sh2ph1", "ic42ih7oc20kh3ph1"))
def test_layouts_have_equal_bits(operation, data_format, text):
    """Gaps between positions must change no bit: whether the taps of a row are evenly spaced decides no sum."""
    problem = parse(f'mb2{text}n"paired"')
    tensors = real_tensors(problem, "bfloat16")

    def apart(array):
        memory = np.zeros((*array.shape[:-1], array.shape[-1] + 6), array.dtype)
        memory[..., :-6] = array
        return memory[..., :-6]

    plain = operation.call(problem, tensors, "NCX", algorithm="auto")
    other = operation.call(problem, tensors, data_format, layout=apart, algorithm="auto")
    if data_format == "NXC" and operation.makes != "w":
        other = np.moveaxis(other, -1, 1)
    assert bits(other) == bits(plain)


@operations
def test_what_fills_a_pair_adds_nothing(operation):
    """The filling of a pair must add nothing: an infinity beyond a row's end, or in a window of the task before."""
    problem = parse('mb3ic5ih7iw9oc70kh3kw3sw2n"paired"')
    rng = np.random.default_rng(0)
    shapes = [getattr(problem, f"{name}_shape") for name in "xwy"]
    tensors = Tensors(*(rng.normal(size=shape).astype(dtype_of("bfloat16")) for shape in shapes))
    for name in operation.reads:
        getattr(tensors, name).reshape(-1)[::17] = np.inf
    direct = operation.call(problem, tensors, algorithm="direct").astype(np.float32)
    paired = operation.call(problem, tensors, algorithm="auto").astype(np.float32)
    assert not np.isfinite(direct).all()
    np.testing.assert_array_equal(np.isnan(paired), np.isnan(direct))
    np.testing.assert_array_equal(np.isinf(paired), np.isinf(direct))
    np.testing.assert_allclose(paired[np.isfinite(direct)], direct[np.isfinite(direct)], rtol=2**-7, atol=1e-2)


@operations
@pytest.mark.parametrize("value", (np.inf, -np.nan))
@pytest.mark.parametrize("channel", (0, 1, 6))
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_padding_adds_nothing(operation, value, channel, filter_format):
    """Padding must add nothing for an element of the filter that is not finite, in either half of a pair, or single.

    The results that it meets under padding alone are finite.
    """
    if operation.makes == "w":
        pytest.skip("the filter is the result")
    problem = parse('mb2ic7ih9oc7kh3ph1n"paired"')
    tensors, _ = integer_tensors(problem, "bfloat16")
    w = tensors.w.copy()
    w.reshape(7, 7, 3, 3)[channel, channel, 0, 0] = value
    tensors = tensors._replace(w=w)
    expected = operation.expected(problem, tensors, "NCX", filter_format)
    assert np.isfinite(expected).any() and not np.isfinite(expected).all()
    assert_exact(operation.call(problem, tensors, "NCX", filter_format, algorithm="auto"), expected, "bfloat16")
