"""Tensor copies on the simulator: their data, by a separate definition, and the mistakes that it has to see."""

import numpy as np
import pytest
from sim.executor import FOLDER, SCHEDULES, SimulationError, load, run_launch

from convgrad_cy.gpu import engine
from convgrad_cy.gpu.plan import Launch
from convgrad_cy.gpu.tensor_map import TensorMap
from convgrad_cy.gpu.tiles import Kind
from convgrad_cy.problem import backward_axis_phases, forward_axis

pytestmark = pytest.mark.simulator

KIND = Kind("bf16", 2, 1, 4)
SHARED = 33 << 10
FIELDS = ("mistake", "tiled", "axes", "channel", "place", "image", "offset", "at", "bytes")
NOTHING = {"mistake": 0, "tiled": 0, "axes": 0, "channel": 0, "place": [0] * 3, "image": 0, "offset": [0] * 3}
NOTHING |= {"at": [0] * 5, "bytes": 0}


def run(memory, tensor_map, schedule="ascending", **arguments):
    """A box in its shared memory layout, in chunks of 16 bytes, by rows."""
    start = load((FOLDER / "boxes.cu").read_text(), "box")
    aligned = np.zeros(memory.size + 64, np.uint16)
    skip = -aligned.ctypes.data % 128 // 2
    aligned[skip : skip + memory.size] = memory
    result = np.zeros(SHARED, np.uint8)
    flat = np.hstack([{**NOTHING, **arguments}[name] for name in FIELDS]).tolist()
    launch = Launch("boxes.cu", (), "box", (1, 1, 1), (64, 1, 1), SHARED, (0, 1), tuple(flat), (tensor_map,))
    run_launch(start, launch, [aligned.ctypes.data + 2 * skip, result.ctypes.data], schedule)
    return result[: arguments["bytes"]].reshape(-1, 8, 16)


def swizzled(rows):
    """Rows of 64 elements: chunk c of row r at place c ^ r % 8."""
    chunks = rows.view(np.uint8).reshape(-1, 8, 16)
    places = np.arange(8) ^ np.arange(len(rows))[:, None] % 8
    return np.take_along_axis(chunks, places[:, :, None], 1)


def dense(sizes, channels, gap):
    """Strides in elements of axes with channels nearest, and the total number of elements."""
    strides, step = [], channels + gap
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return strides, step


def random_walk(random, axes):
    """A walk that boxes can follow."""
    while True:
        walk = []
        for _ in range(axes):
            kernel, stride, dilation = (int(random.integers(1, most)) for most in (5, 4, 3))
            size, pad = int(random.integers(4, 16)), int(random.integers(0, 5))
            positions = (size + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1
            if positions > 0:
                sizes = (size, positions, kernel, stride, dilation, pad)
                walks = [forward_axis(*sizes), *backward_axis_phases(*sizes)]
                walk.append(walks[int(random.integers(len(walks)))])
        if len(walk) == axes and all(engine._fits(axis, axes) and axis.taps and axis.positions for axis in walk):
            return walk


@pytest.mark.parametrize("seed", range(24))
def test_pixels_follow_a_walk(seed):
    """A row of the box must be the source at the tap that its position meets, or zeros if there is none."""
    random = np.random.default_rng(seed)
    axes, batch, pixels = seed % 3 + 1, int(random.integers(1, 4)), (64, 128, 256)[seed % 2]
    walk, channels, gap = random_walk(random, axes), 8 * int(random.integers(5, 25)), 8 * int(random.integers(2))
    sizes = (batch, *(axis.source_size for axis in walk))
    strides, elements = dense(sizes, channels, gap)
    memory = random.integers(1, 1 << 16, elements).astype(np.uint16)
    source = np.lib.stride_tricks.as_strided(memory, (*sizes, channels), [2 * step for step in (*strides, 1)])
    packed = engine_operand(strides, channels)
    tensor_map = engine._im2col_map(0, KIND, packed, batch, [TRIVIAL] * (3 - axes) + walk, axes, pixels)
    tap = [int(random.integers(axis.taps)) for axis in walk]
    first = int(random.integers(batch * np.prod([axis.positions for axis in walk])))
    channel = 64 * int(random.integers(-(-channels // 64)))

    expected = np.zeros((pixels, 64), np.uint16)
    for row in range(pixels):
        image, *position = np.unravel_index(first + row, (batch + pixels, *(axis.positions for axis in walk)))
        met = [
            p * a.source_step + t * a.source_tap + a.source_begin for p, t, a in zip(position, tap, walk, strict=True)
        ]
        if image < batch and all(0 <= at < axis.source_size for at, axis in zip(met, walk, strict=True)):
            found = source[(image, *met)][channel : channel + 64]
            expected[row, : len(found)] = found

    image, *position = (int(i) for i in np.unravel_index(first, (batch, *(axis.positions for axis in walk))))
    least = [min((axis.taps - 1) * axis.source_tap, 0) for axis in walk]
    place = [p * a.source_step + a.source_begin + low for p, a, low in zip(position, walk, least, strict=True)]
    offset = [t * a.source_tap - low for t, a, low in zip(tap, walk, least, strict=True)]
    skipped = [0] * (3 - axes)
    found = run(
        memory,
        tensor_map,
        list(SCHEDULES)[seed % 3],
        axes=axes,
        channel=channel,
        place=skipped + place,
        image=image,
        offset=skipped + offset,
        bytes=128 * pixels,
    )
    np.testing.assert_array_equal(found, swizzled(expected))


TRIVIAL = forward_axis(1, 1, 1, 1, 1, 0)


def engine_operand(strides, channels):
    """The ``Packed`` of pack.py for data with these strides of batch and spatial axes."""
    from convgrad_cy.gpu.pack import Packed

    by_batch, *space = strides
    return Packed(0, (by_batch, 0, 1, *[0] * (3 - len(space)), *space), 0, channels, None, 0)


def filter_box(random):
    """Channels of some columns at one tap: the map of a filter, its memory, and the box's begin."""
    sizes, channels = tuple(int(random.integers(1, most)) for most in (90, 4, 4, 4)), 8 * int(random.integers(1, 20))
    strides, elements = dense(sizes, channels, 0)
    memory = random.integers(1, 1 << 16, elements).astype(np.uint16)
    names, steps = engine._innermost_first(channels, sizes, strides, KIND)
    tap = [int(random.integers(size)) for size in sizes[1:]]
    channel, column = 64 * int(random.integers(-(-channels // 64))), int(random.integers(sizes[0]))
    whole = memory.reshape(*sizes, channels)[(slice(column, None), *tap)][:64, channel : channel + 64]
    expected = np.zeros((64, 64), np.uint16)
    expected[: whole.shape[0], : whole.shape[1]] = whole
    tensor_map = TensorMap(0, "bf16", names, steps, (64, 1, 1, 1, 64))
    return memory, tensor_map, [channel, *reversed(tap), column], expected


@pytest.mark.parametrize("seed", range(6))
def test_a_box_of_a_filter(seed):
    memory, tensor_map, at, expected = filter_box(np.random.default_rng(seed))
    found = run(memory, tensor_map, list(SCHEDULES)[seed % 3], tiled=1, at=at, bytes=64 * 128)
    np.testing.assert_array_equal(found, swizzled(expected))


#: Names in the order of the enumeration in boxes.cu, after the first one, which spoils the result.
MISTAKES = (
    "no fence.mbarrier_init has shown",
    "the block has not met since|none was made",
    "wait for ever",
    "more than 1 arrivals",
    "wait for ever",
    "not where the swizzle begins",
    "is not in shared memory",
    "there is no tensor map",
    "none was made",
)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("number, message", list(enumerate(MISTAKES, 2)))
def test_mistakes_are_reported(number, message, schedule):
    memory, tensor_map, at, _ = filter_box(np.random.default_rng(0))
    with pytest.raises(SimulationError, match=message):
        run(memory, tensor_map, schedule, tiled=1, at=at, bytes=64 * 128, mistake=number)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_nobody_waits_for_has_not_come(schedule):
    memory, tensor_map, at, _ = filter_box(np.random.default_rng(0))
    with pytest.raises(SimulationError, match="it has ended while boxes were on their way"):
        run(memory, tensor_map, schedule, tiled=1, at=at, bytes=64 * 128, mistake=1)


@pytest.mark.parametrize("change", ({"axes": 2}, {"place": [0, 9, 0]}, {"offset": [0, 0, 256]}, {"tiled": 1}))
def test_copies_that_do_not_fit_the_map(change):
    walk = [TRIVIAL, forward_axis(5, 5, 3, 1, 1, 1), forward_axis(5, 5, 3, 1, 1, 1)]
    axes = 2 if change != {"axes": 2} else 1
    walk = walk if axes == 2 else [TRIVIAL, TRIVIAL, walk[2]]
    strides, elements = dense([2, *[5] * axes], 64, 0)
    tensor_map = engine._im2col_map(0, KIND, engine_operand(strides, 64), 2, walk, axes, 64)
    arguments = {"axes": axes, "place": [0, -1 if axes == 2 else 0, -1], "bytes": 64 * 128}
    run(np.ones(elements, np.uint16), tensor_map, **arguments)
    with pytest.raises(SimulationError, match="tensor copy: "):
        run(np.ones(elements, np.uint16), tensor_map, **{**arguments, **change})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_barrier_of_some_threads(schedule):
    start = load((FOLDER / "boxes.cu").read_text(), "halves")

    def halves(source, mistake=0):
        result = np.zeros(32, np.int32)
        launch = Launch("boxes.cu", (), "halves", (1, 1, 1), (64, 1, 1), 0, (0, 1), (mistake,))
        run_launch(start, launch, [source.ctypes.data, result.ctypes.data], schedule)
        return result

    source = np.arange(10, 42, dtype=np.int32)
    np.testing.assert_array_equal(halves(source), source[::-1])
    source[3] = 7
    np.testing.assert_array_equal(halves(source), source[::-1] + 100)
    with pytest.raises(SimulationError, match=r"wait for ever.*barrier\.sync"):
        halves(source, 1)
