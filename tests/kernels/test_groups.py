"""Groups of few channels: side by side as lanes, one by one, or by tiles of half a vector, whichever is faster.

The choice for a layout changes neither the values nor their last bits.
"""

from dataclasses import replace

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from plans import plan_of
from problems import parse

import convgrad_cy as cg
from convgrad_cy import calls, cpu
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.machine.register_tile import tile_cycles
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.dtypes import TABLE
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

#: (groups, channels of x and of y in each). The sources of an expanded vector lie in one vector, in two, or further
#: apart.
GROUPS = ((40, 1, 2), (20, 1, 4), (40, 2, 1), (10, 4, 1), (40, 2, 2), (10, 2, 4), (10, 4, 2), (12, 3, 3), (7, 3, 6))
GROUPS += ((20, 4, 4), (6, 8, 8), (5, 5, 8), (5, 8, 5), (4, 7, 24), (3, 24, 8))
#: Rows of few positions and of many.
WIDTHS = (6, 30)
LAYERS = [
    f"mb2g{g}ic{g * c}ih5iw{width}oc{g * o}kh3sh{s}ph1n" for g, c, o in GROUPS for width in WIDTHS for s in (1, 2)
]
#: Layers with enough tasks for each to copy whole lines of channels: all of them, or some blocks.
LAYERS += [f"mb16g65ic65ih5iw6oc65kh3sh{s}ph1n" for s in (1, 2)] + ["mb8g600ic600ih4oc600kh3ph1n"]
#: A layer with a long table of taps.
LAYERS += ["mb1g5ic5iw420oc5ow221kw200n"]
#: Layers whose wgrad, channels last, has bands: of all positions or of a part. The last band may be short, with a rim.
BANDS = ["mb8g144ic144ih31iw28oc144kh3ph1n", "mb8g144ic144ih57iw56oc144oh28kh5sh2ph1n", "mb8g96ic96ih80oc96kh3ph1n"]
BANDS += ["mb8g144ic144ih31iw28oc144kh3dh1ph2n", "mb2g144ic144ih66iw80oc144kh3ph1n"]
#: Layers with boxes one below the other, of vectors that are not whole, and with boxes side by side.
BELOW = ["mb8g20ic20ih120iw70oc20kh3ph1n", "mb4g20ic20ih5iw2000oc20kh3ph1n"]
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))


@operations
@pytest.mark.parametrize("text", LAYERS)
def test_exact(operation, text):
    problem = parse(f'{text}"groups"')
    for dtype in DTYPES:
        tensors, _ = integer_tensors(problem, dtype)
        for formats in (("NCX", "OIX"), ("NXC", "XIO")):
            result = operation.call(problem, tensors, *formats, layout=np.ascontiguousarray)
            assert_exact(result, operation.expected(problem, tensors, *formats), dtype)


@pytest.mark.parametrize("operation", ("conv", "conv_backward_data", "conv_backward_filter"))
@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32"))
@pytest.mark.parametrize("text", LAYERS)
def test_layouts_have_the_same_bits(operation, dtype, text):
    problem = parse(f'{text}"groups"')
    tensors = real_tensors(problem, dtype)
    first, last = (
        OPERATIONS[operation].call(problem, tensors, data_format, "OIX", layout=np.ascontiguousarray)
        for data_format in ("NCX", "NXC")
    )
    if operation != "conv_backward_filter":
        last = np.moveaxis(last, -1, 1)
    assert bits(first) == bits(last)


@pytest.mark.parametrize("operation", ("conv", "conv_backward_data"))
@pytest.mark.parametrize(
    "text", ("mb3g4ic32ih56oc32kh3sh2ph1n", "mb2g2ic128ih56oc16kh3sh2ph1n", "mb3g8ic64ih28oc64kh5sh2ph2n")
)
def test_strided_groups_of_eight(machine_with, operation, text):
    """The choice between cache and memory selects tiles of half a vector, but must change no bit.

    The data are integers: floating-point numbers take the spreading tile.
    """
    problem = parse(f'{text}"eights"')
    tensors, of_reals = integer_tensors(problem, "int32")[0], real_tensors(problem, "int32")
    found = set()
    for cache_bytes in (0, 1 << 40):
        machine_with(cache_bytes=cache_bytes)
        for formats in (("NCX", "OIX"), ("NXC", "XIO")):
            run = OPERATIONS[operation].call
            result = run(problem, tensors, *formats, layout=np.ascontiguousarray)
            assert_exact(result, OPERATIONS[operation].expected(problem, tensors, *formats), "int32")
            result = run(problem, of_reals, formats[0], "OIX", layout=np.ascontiguousarray)
            found.add(bits(np.moveaxis(result, -1, 1) if formats[0] == "NXC" else result))
    assert len(found) == 1


@pytest.mark.tuning
def test_split_vectors_are_planned():
    """On machines that multiply the halves of a vector in turn, tiles of half a vector must count as full tiles.

    Channels last, a stride decides about them, but not about the order of a sum.
    """
    machine = Machine(6, 256, 64, True, 32 << 20, 2)
    split = machine._replace(splits_vectors=True)
    assert tile_cycles(80, 8, split.tile, 4) < tile_cycles(80, 8, machine.tile, 4)
    assert tile_cycles(80, 64, split.tile, 4) == tile_cycles(80, 64, machine.tile, 4)
    narrow = Machine(6, 64, 32, False, 32 << 20, 2).tile
    assert tile_cycles(80, 8, narrow._replace(splits_vectors=True), 4) == tile_cycles(80, 8, narrow, 4)
    problem = ConvProblem(8, 32, 8, 8, (1, 56, 56), (1, 28, 28), (1, 3, 3), (1, 2, 2), pad_begin=(0, 1, 1))
    for operation in (FPROP, DGRAD):
        first, last, whole = (
            Blocks(*plan_of(operation, problem, TABLE[4], adjacent, one).blocks)
            for adjacent, one in ((True, split), (False, split), (False, machine))
        )
        assert first.positions_across and not last.positions_across and not last.lanewise
        assert not whole.lanewise and not whole.positions_across  # a source beyond half of the last cache, long rows
        assert first.chunk == last.chunk == whole.chunk == 8
    near = Blocks(*plan_of(FPROP, problem, TABLE[4], False, machine._replace(cache_bytes=1 << 30)).blocks)
    assert near.positions_across and near.chunk == 8
    short = replace(problem, x=(1, 28, 28), y=(1, 14, 14))
    assert Blocks(*plan_of(DGRAD, short, TABLE[4], False, machine).blocks).lanewise
    problem = replace(problem, x=problem.y, stride=(1, 1, 1))
    assert Blocks(*plan_of(FPROP, problem, TABLE[4], False, split).blocks).positions_across


@pytest.mark.parametrize("splits", (False, True))
@pytest.mark.parametrize("dtype", ("float32", "float64", "int32"))
@pytest.mark.parametrize(
    "text", ("ic48ih28oc48kh3ph1", "ic24ih28oc24kh3ph1", "ic48ih29oc48kh3sh2ph1", "ic48oc12ih60kh1")
)
def test_split_vectors(text, dtype, splits, machine_with):
    """Layers large enough for tiles of half a vector must be exact, whether this processor gains from them or not."""
    machine_with(splits_vectors=splits)
    problem = parse(f'mb4g6{text}n"split"')
    for operation in map(OPERATIONS.get, ("conv", "conv_backward_data")):
        (tensors, _), reals, seen = integer_tensors(problem, dtype), real_tensors(problem, dtype), []
        for data_format in ("NCX", "NXC"):
            result = operation.call(problem, tensors, data_format, "OIX", layout=np.ascontiguousarray)
            assert_exact(result, operation.expected(problem, tensors, data_format, "OIX"), dtype)
            result = operation.call(problem, reals, data_format, "OIX", layout=np.ascontiguousarray)
            seen.append(bits(result if data_format == "NCX" else np.moveaxis(result, -1, 1)))
        assert seen[0] == seen[1]
    calls.forget()


@pytest.mark.tuning
@pytest.mark.parametrize(
    "operation, channels, outputs, width, expected",
    [
        (FPROP, 1, 1, 112, True),
        (FPROP, 4, 4, 112, False),  # long rows are whole vectors
        (FPROP, 4, 4, 4, True),
        (DGRAD, 4, 4, 4, True),
        (FPROP, 3, 3, 4, False),  # groups that lie across vectors
        (FPROP, 4, 2, 4, False),  # channels from many vectors
        (FPROP, 8, 8, 4, False),
        (WGRAD, 3, 3, 112, True),
    ],
)
@pytest.mark.parametrize("vector", (16, 32, 64))
def test_which_are_lanes(operation, channels, outputs, width, expected, vector):
    """Groups must be lanes if a task copies a vector for each channel."""
    sizes = (1, 28, width), (1, 28, width), (1, 3, 3)
    problem = ConvProblem(8, 64, channels, outputs, *sizes, pad_begin=(0, 1, 1))
    half = max(channels, outputs) <= vector // 8
    machine = cpu.this_machine()._replace(vector_bytes=vector, tile_column_bytes=4 * vector, tile_rows=6)
    made = plan_of(operation, problem, TABLE[4], False, machine)
    assert Blocks(*made.blocks).lanewise == (expected and half)


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("batch", "adjacent", "threads", "lanes"),
    (
        (8, False, 16, 144),
        (8, False, 64, 32),  # lines would leave too few tasks
        (1, False, 2, 32),
        (8, True, 2, 32),  # no line has several channels
    ),
)
@pytest.mark.parametrize("dtype", TABLE[:2], ids=lambda dtype: dtype.name)
def test_lines_are_copied(batch, adjacent, threads, lanes, dtype):
    """Copies of 16-bit depthwise layers, channels last, must be of whole lines if enough tasks are left."""
    problem = ConvProblem(batch, 144, 1, 1, (1, 28, 28), (1, 28, 28), (1, 3, 3), (1, 1, 1), pad_begin=(0, 1, 1))
    for operation in (FPROP, DGRAD):
        made = plan_of(operation, problem, dtype, adjacent, Machine(6, 256, 64, True, 32 << 20, threads))
        assert Blocks(*made.blocks.tolist()).outputs == lanes


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("text", BANDS + BELOW)
def test_bands(text, dtype):
    """Boxes in bands must have the sums of whole boxes, as channels first has them."""
    problem, operation = parse(f'{text}"bands"'), OPERATIONS["conv_backward_filter"]
    exact, _ = integer_tensors(problem, dtype)
    for tensors in (exact, real_tensors(problem, dtype)):
        first, last = (operation.call(problem, tensors, name, layout=np.ascontiguousarray) for name in ("NCX", "NXC"))
        assert bits(first) == bits(last)
        if tensors is exact:
            assert_exact(first, operation.expected(problem, exact), dtype)


@pytest.mark.tuning
@pytest.mark.parametrize("text", BANDS)
def test_bands_are_planned(text):
    asked, machine = parse(f'{text}"bands"'), Machine(6, 256, 64, True, 32 << 20, 2)
    axes = ((1, *axis) for axis in (asked.x, asked.y, asked.kernel, asked.stride, asked.dilation))
    pad = (0, *(begin for begin, _ in asked.padding))
    problem = ConvProblem(asked.batch, asked.groups, 1, 1, *axes, pad)
    last, first = (
        Blocks(*plan_of(WGRAD, problem, TABLE[1], adjacent, machine).blocks.tolist()) for adjacent in (False, True)
    )
    assert last.bands > 1 == first.bands and last.outputs > first.outputs and last.slices == first.slices


@pytest.mark.tuning
def test_large_filters_of_lanes():
    """Depthwise filters of 50×50 taps must be lanes: the general algorithm would be 10x slower."""
    found = cg.explain("conv", [(1, 64, 86, 86), (64, 1, 50, 50)], groups=64)
    assert found.family == "small_groups"
