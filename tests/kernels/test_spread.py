"""The spreading tile: groups of several channels. It makes vectors of lanes from the source's vectors in registers."""

import numpy as np
import pytest
from operations import OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from plans import plan_of
from problems import parse

import convgrad_cy as cg
from convgrad_cy import calls, cpu
from convgrad_cy.cpu import small_groups
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.dtypes import TABLE
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

KERNELS = ("conv", "conv_backward_data", "conv_backward_filter")
#: Rows of taps in threes and one by one, forward and backward, and their rests; columns that positions share, and that
#: they skip; vectors that end with a group, and with a part of one.
LAYERS = (
    "mb2g8ic32ih9iw23oc32kh3ph1n",
    "mb1g40ic80ih6iw33oc80kh3ph1n",
    "mb2g21ic63ih7iw12oc63kh3ph1n",
    "mb1g3ic9ih5iw9oc6kh3ph1n",
    "mb1g10ic20ih6iw11oc40kh3sh2ph1n",
    "mb2g10ic40ih9iw25oc20kh3sh2ph1n",
    "mb1g12ic24ih5iw30oc24kh2kw7ph1pw3n",
    "mb1g9ic27ih8iw13oc27kh4sh1ph2n",
    "mb1g8ic32ih11iw17oc32kh3dh1ph2n",
    "mb1g8ic32ih11iw17oc32kh2kw5sh3sw1pw2n",
    "mb1g8ic16id5ih6iw7oc16kd3kh3kw3pd1ph1pw1n",
    "mb2g20ic80iw70oc80kw5pw2n",
    "mb1g64ic256ih4iw12oc256kh3ph1n",
)
#: Layers whose groups have more channels than a narrow vector has.
WIDE_LAYERS = (
    "mb2g5ic40ih9iw15oc40kh3ph1n",
    "mb1g4ic24ih9iw15oc24kh3ph1n",
    "mb1g4ic28ih9iw15oc20kh3ph1n",
    "mb1g6ic30ih8iw14oc48kh3sh2ph1n",
)
FORMATS = (("NCX", "OIX"), ("NXC", "XIO"))
wide = cpu.this_machine().vector_bytes >= 64
pytestmark = pytest.mark.skipif(cpu.this_machine().vector_bytes < 32, reason="such vectors are not permuted")
layers = pytest.mark.parametrize("text", LAYERS + (WIDE_LAYERS if wide else ()))
operations = pytest.mark.parametrize("operation", KERNELS)


def spreads(monkeypatch, operation, text, dtype, data_format="NXC"):
    """``Blocks.spreads`` of the call; 0 if another family takes it."""
    seen, problem, pipeline = [0], parse(f'{text}"spread"'), small_groups.pipeline
    monkeypatch.setattr(small_groups, "pipeline", lambda *task: seen.append(pipeline(*task)) or seen[-1])
    tensors, _ = integer_tensors(problem, dtype)
    calls.forget()
    OPERATIONS[operation].call(problem, tensors, data_format, "OIX", layout=np.ascontiguousarray)
    monkeypatch.undo()
    return seen[-1] and Blocks(*seen[-1].steps[0].plan.blocks.tolist()).spreads


@operations
@layers
def test_exact(monkeypatch, operation, text):
    problem, seen = parse(f'{text}"spread"'), 0
    for dtype in ("float16", "bfloat16", "float32"):
        tensors, _ = integer_tensors(problem, dtype)
        for formats in FORMATS:
            result = OPERATIONS[operation].call(problem, tensors, *formats, layout=np.ascontiguousarray)
            assert_exact(result, OPERATIONS[operation].expected(problem, tensors, *formats), dtype)
        seen += spreads(monkeypatch, operation, text, dtype) > 0
    declines = text in WIDE_LAYERS if operation == "conv_backward_filter" else not wide
    assert seen == 3 or declines


@operations
@layers
def test_places_have_the_same_bits(machine_with, operation, text):
    """The bits must not depend on layouts, copies, and threads."""
    problem, found = parse(f'{text}"spread"'), {}
    for dtype in ("bfloat16", "float32"):
        tensors = real_tensors(problem, dtype)
        for cache_bytes, threads in ((0, 1), (1 << 40, 1), (0, 5)):
            machine_with(cache_bytes=cache_bytes, threads=threads)
            for data_format in ("NCX", "NXC"):
                result = OPERATIONS[operation].call(problem, tensors, data_format, "OIX", layout=np.ascontiguousarray)
                if data_format == "NXC" and operation != "conv_backward_filter":
                    result = np.moveaxis(result, -1, 1)
                found.setdefault(dtype, set()).add(bits(result))
    assert [len(each) for each in found.values()] == [1, 1]


def test_are_in_place_and_copied(monkeypatch):
    text, machine = "mb2g32ic64ih9iw23oc64kh3ph1n", cpu.this_machine()
    for cache_bytes, expected in ((0, 1), (1 << 40, 2)):
        for operation in KERNELS:
            for dtype, data_format, places in (
                ("float32", "NXC", expected),
                ("float32", "NCX", 1),
                ("bfloat16", "NXC", 1),
                ("float64", "NXC", 0),
            ):
                here = machine._replace(cache_bytes=cache_bytes)
                monkeypatch.setattr(cpu, "this_machine", lambda *_, here=here: here)
                assert spreads(monkeypatch, operation, text, dtype, data_format) == places
    calls.forget()


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
def test_infinite_weights_meet_no_padding(dtype):
    problem = parse('mb1g8ic32ih5iw9oc32kh3ph1n"infinite"')
    (x, w, _), _ = integer_tensors(problem, dtype)
    x[...], w[...] = 1, 1
    w[:, :, 0, 0] = np.inf
    for data_format in ("NCX", "NXC"):
        seen = x if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(x, 1, -1))
        y = cg.conv(seen, w, padding=1, groups=8, data_format=data_format)
        y = (y if data_format == "NCX" else np.moveaxis(y, -1, 1)).astype(np.float32)
        assert np.isfinite(y[:, :, 0]).all() and np.isfinite(y[..., 0]).all() and np.isinf(y[:, :, 1:, 1:]).all()


def test_direct_keeps_subnormal_numbers():
    """With "direct", subnormal numbers must stay: pairs of bfloat16 would be multiplied with zeros instead."""
    problem = parse('mb1g8ic32ih5iw9oc32kh3ph1n"subnormal"')
    (x, w, _), _ = integer_tensors(problem, "bfloat16")
    x[...], w[...] = 2.0**-130, 1
    y = cg.conv(x, w, padding=1, groups=8, algorithm="direct").astype(np.float32)
    np.testing.assert_array_equal(y[:, :, 1:-1, 1:-1], np.float32(36 * 2.0**-130))


@pytest.mark.tuning
@pytest.mark.parametrize(
    "operation, groups, channels, outputs, width, dtype, expected",
    [
        (FPROP, 64, 4, 4, 112, 2, True),
        (FPROP, 64, 3, 3, 4, 2, True),
        (DGRAD, 64, 8, 8, 28, 1, True),
        (WGRAD, 64, 4, 4, 28, 1, True),
        (FPROP, 64, 4, 4, 3, 2, False),  # too few sums of a row
        (FPROP, 2, 2, 2, 28, 2, False),  # a quarter of a vector
        (WGRAD, 64, 5, 5, 28, 2, False),  # three sums at a time
        (WGRAD, 64, 8, 8, 28, 2, False),  # half a vector
        (WGRAD, 64, 6, 6, 28, 1, False),  # pairs of positions
        (WGRAD, 64, 6, 6, 28, 2, True),
        (FPROP, 64, 4, 4, 112, 3, False),  # float64
    ],
)
def test_which_are_spread(operation, groups, channels, outputs, width, dtype, expected):
    sizes = (1, 28, width), (1, 28, width), (1, 3, 3)
    problem = ConvProblem(8, groups, channels, outputs, *sizes, pad_begin=(0, 1, 1))
    for adjacent in (False, True):
        machine = Machine(6, 256, 64, True, 32 << 20, 2, True)
        plan = plan_of(operation, problem, TABLE[dtype], adjacent, machine)
        assert (Blocks(*plan.blocks).spreads > 0) == expected


@pytest.mark.tuning
@pytest.mark.parametrize("kernel, expected", [((1, 47, 1), False), ((1, 5, 1), True)])
def test_boxes_whose_copies_have_a_product_each(kernel, expected):
    """Boxes of a few positions must not copy a large window of many channels, which the next box copies again."""
    x = 66, 44
    problem = ConvProblem(5, 52, 3, 1, (1, *x), (1, x[0] - kernel[1] + 1, x[1]), kernel)
    machine = Machine(6, 256, 64, True, 32 << 20, 2, True)
    for operation in (FPROP, WGRAD):
        for adjacent in (False, True):
            asked = operation, problem, TABLE[2], adjacent, machine
            assert (small_groups.outline_or_reason(*asked).reason is None) == expected
