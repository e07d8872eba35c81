"""TMA copies: the tasks that they suit, and maps that the driver accepts."""

import ctypes

import numpy as np
import pytest
from gpus import ATTRIBUTES, DEVICES
from operations import integer_tensors
from planned import LAYERS
from problems import PROBLEMS, parse
from sim import tensor_maps
from simulated import CHANNELS_FIRST, CHANNELS_LAST, H200, OPERATIONS, Case, task_without_memory

from bench.gpu import forced
from convgrad_cy.gpu import engine, mma, tensor_map, tiles, work
from convgrad_cy.gpu.pack import pack
from convgrad_cy.gpu.plan import FILTER, SOURCE, TARGET, WORKSPACE
from convgrad_cy.gpu.products import phases_of
from convgrad_cy.gpu.tensor_map import TensorMap
from convgrad_cy.problem import WGRAD

KIND = tiles.Kind("bf16", 2, 1, 4)
DENSE = parse('mb8ic128ih28oc128kh3ph1n"dense"')
kernels = pytest.mark.parametrize("kernel", OPERATIONS)


def reason(task, groups=1):
    """The reason why the engine declines a task whose operands are packed where necessary, or None."""
    numbers = (SOURCE, TARGET) if task.operation == WGRAD else (SOURCE, FILTER)
    operands = [(task.source, task.filter, task.target)[number] for number in numbers]
    packed = [pack(number, one, task.dtype, KIND, WORKSPACE) for number, one in zip(numbers, operands, strict=True)]
    shapes = [(one.shape, other) for one, other in zip(operands, packed, strict=True)]
    return engine.declined(task.device, mma.kind_of(task), groups, phases_of(task), shapes)


def of(kernel, problem, dtype="bfloat16", formats=CHANNELS_LAST, device=H200):
    return task_without_memory(kernel, problem, dtype, formats=formats, device=device)


# ---- which tasks ----


@kernels
@pytest.mark.parametrize("formats", (CHANNELS_FIRST, CHANNELS_LAST))
def test_a_dense_layer(kernel, formats):
    for dtype in ("bfloat16", "float16"):
        assert mma.engine_brings(of(kernel, DENSE, dtype, formats))
        is_stored = kernel == "wgrad" or formats == CHANNELS_LAST  # 27 x 27 positions first cannot be unpacked
        assert mma.engine_brings(of(kernel, parse('mb8ic128ih27oc128kh3ph1n"odd"'), dtype, formats)) == is_stored


@kernels
def test_other_types_and_devices(kernel):
    for dtype in ("float32", "float64"):
        assert "16-bit" in reason(of(kernel, DENSE, dtype))
    for device in (DEVICES[80], DEVICES[100], H200._replace(engine=False)):
        assert reason(of(kernel, DENSE, device=device)) == "the device does not support TMA"


@kernels
def test_groups(kernel):
    """The engine must decline several groups, unless they are joined to one."""
    problem = parse('mb8g2ic128ih28oc128kh3ph1n"groups"')
    task = of(kernel, problem)
    assert "one group" in reason(task, 2) and not mma.engine_brings(task)
    few = of(kernel, parse('mb8g4ic32ih28oc32kh3ph1n"few"'))
    assert mma.engine_brings(few, mma.joins(few)[-1]) and not mma.engine_brings(few)


#: Walks at the limits of tensor maps with one, two and three spatial axes, and just beyond.
LIMITS = (
    (
        'mb1ic64iw300oc64kw2dw128n"taps"',
        'mb1ic64ih300iw9oc64kh2kw1dh127n"taps"',
        'mb1ic64ih300iw9oc64kh2kw1dh128n"taps"',
    ),
    (None, 'mb1ic64ih9oc64kh3dh126ph127n"reach"', 'mb1ic64ih99oc64kh3dh128ph128n"reach"'),
    (None, 'mb1ic64ih30oc64kh3ph128n"padding"', 'mb1ic64ih30oc64kh3ph129n"padding"'),
    ('mb1ic64iw30oc64kw3pw200n"padding_of_a_line"', None, None),
    (None, 'mb1ic64id40oc64kd2dd15n"volume"', 'mb1ic64id40oc64kd2dd16n"volume"'),
    (None, 'mb1ic64id20oc64kd3pd16n"corner"', 'mb1ic64id20oc64kd3pd17n"corner"'),
    (None, 'mb1ic64ih64oc64kh3sh8n"steps"', 'mb1ic64ih64oc64kh3sh9n"steps"'),
)


@pytest.mark.parametrize("line, fits, beyond", LIMITS)
@pytest.mark.parametrize("kernel", ("fprop", "wgrad"))
def test_limits_of_walks(kernel, line, fits, beyond):
    for text in filter(None, (line, fits)):
        assert reason(of(kernel, parse(text))) is None, text
    if beyond is not None:
        assert "too far" in reason(of(kernel, parse(beyond)))


def test_phases_of_a_launch():
    assert reason(of("dgrad", parse('mb1ic64id8oc64kd4sd2n"eight"'))) is None
    assert "8 stride phases" in reason(of("dgrad", parse('mb1ic64ih12oc64kh3sh3n"nine"')))


def upside_down(array):
    return np.ascontiguousarray(array[:, ::-1])[:, ::-1]


@pytest.mark.parametrize("kernel", ("fprop", "wgrad"))
def test_strides(kernel):
    """No map may have negative strides, far ones, or the strides of an operand that is one element everywhere."""
    tensors, _ = integer_tensors(DENSE, "bfloat16")
    task = Case(kernel, DENSE, tensors, formats=CHANNELS_LAST, layout=upside_down).task
    assert "positive" in reason(task)
    task = of(kernel, DENSE)
    _, *others = task.source.strides
    assert "positive" in reason(task._replace(source=task.source._replace(strides=(0, *others))))
    far = task.source._replace(strides=(2**39, *others))
    assert "positive" in reason(task._replace(source=far))


def planned(kernel, problem, **keywords):
    """The sources of the launched kernels."""
    return [launch.source for launch in mma.launches(of(kernel, parse(problem), **keywords)).launches]


@pytest.mark.tuning
def test_where_it_is_taken():
    """Half-empty boxes must decline. Filters must be used in place, and results with channels first unpacked."""
    dense, few = 'mb64ic256ih28oc256kh3ph1n"dense"', 'mb2ic32id64oc32kd3pd1n"few"'
    assert planned("dgrad", dense) == planned("fprop", dense) == ["mma_engine.cu"]
    assert planned("dgrad", few) == ["pack.cu", "mma.cu"]
    first = ["transpose.cu", "pack.cu", "mma_engine.cu", "transpose.cu"]
    assert planned("dgrad", dense, formats=CHANNELS_FIRST) == first
    odd = 'mb64ic256ih27oc256kh3ph1n"odd"'
    assert planned("dgrad", odd, formats=CHANNELS_FIRST) == ["pack.cu", "pack.cu", "mma.cu"]
    assert planned("dgrad", dense, device=H200._replace(engine=False)) == ["pack.cu", "mma.cu"]
    for device in (H200, H200._replace(engine=False)):
        task = of("wgrad", parse(dense), device=device)
        (launch,) = (launch for launch in mma.launches(task).launches if launch.source == "mma_wgrad.cu")
        assert bool(launch.maps) == (dict(launch.macros)["ENGINE"] == "1") == device.engine


# ---- maps ----


def every_task():
    for problem in (*LAYERS, *PROBLEMS.values()):
        for kernel in OPERATIONS:
            if problem.batch:
                yield of(kernel, problem)


def test_the_driver_takes_every_map():
    """The driver must take every map, for all problems that suit the engine, with each tile."""
    taken = 0
    for task in every_task():
        if not mma.can(task) or not mma.engine_brings(task):
            continue
        for tile in (*tiles.tiles(KIND, H200, task.operation == WGRAD), *tiles.by_engine(KIND, H200)):
            if tile.engine:
                with forced.taking("mma", forced.Product(tile, 1)):
                    plan = mma.launches(task)
                for launch in plan.launches:
                    tensor_maps.encoded(launch.maps, [1 << 20] * len(launch.pointers))
                    taken += len(launch.maps)
    assert taken > 1000


GOOD = TensorMap(0, "bf16", (64, 9, 8, 3), (128, 1152, 9216), (64, 128), (-1, -1), (-1, -1), (1, 1))
TILED = TensorMap(0, "f16", (64, 3, 3, 1, 64), (128, 384, 16, 1152), (64, 1, 1, 1, 128))


@pytest.mark.parametrize(
    "good, change",
    [
        (GOOD, {"lower": (-129, -1)}),
        (GOOD, {"upper": (128, -1)}),
        (GOOD, {"steps": (9, 1)}),
        (GOOD, {"strides": (128, 1152, 9210)}),
        (GOOD, {"strides": (128, 0, 9216)}),
        (GOOD, {"box": (65, 128)}),
        (GOOD, {"box": (64, 1025)}),
        (TILED, {"sizes": (64, 3, 3, 0, 64)}),
        (TILED, {"box": (64, 1, 1, 1, 257)}),
        (TILED, {"strides": (128, 384, 16, 2**40)}),
    ],
)
def test_what_the_driver_refuses(good, change):
    tensor_maps.encoded((good,), [1 << 20])
    with pytest.raises(RuntimeError, match="the driver must make a tensor map of"):
        tensor_maps.encoded((good._replace(**change),), [1 << 20])


def test_an_address_out_of_line():
    with pytest.raises(RuntimeError, match="CUDA error 1"):
        tensor_maps.encoded((GOOD,), [(1 << 20) + 8])


def test_a_machine_without_the_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    tensor_map._driver.cache_clear()
    assert not tensor_map.can_encode()
    tensor_map._driver.cache_clear()


class Counting:
    """The driver, which counts its calls by the address of the tensor."""

    def __init__(self):
        self.addresses = []

    def __getattr__(self, name):
        def call(place, kind, rank, address, *rest):
            self.addresses.append(address.value)
            return getattr(tensor_maps.LIBRARY, name)(place, kind, rank, address, *rest)

        return call


def test_maps_are_made_anew_for_other_addresses(monkeypatch):
    driver = Counting()
    monkeypatch.setattr(tensor_map, "_driver", lambda: driver)
    encoder = work._encoder((GOOD, TILED._replace(pointer=1)))
    made = [encoder(*addresses).tobytes() for addresses in ((16, 32), (16, 48), (16, 32))]
    assert driver.addresses == [16, 32, 16, 48]
    assert made[0] == made[2] != made[1]
    assert work._encoder(()) is None


@kernels
def test_equal_maps_are_made_once(kernel, monkeypatch):
    """A launch has nine maps for a correlation. The driver must write each distinct one once."""
    driver = Counting()
    monkeypatch.setattr(tensor_map, "_driver", lambda: driver)
    (launch,) = (launch for launch in mma.launches(of(kernel, DENSE)).launches if launch.maps)
    addresses = [16 * number + 16 for number in launch.pointers]
    found = work._encoder(launch.maps)(*addresses)
    assert len(driver.addresses) == 2
    each = [work._encoder((one,))(*addresses).tobytes() for one in launch.maps]
    assert found.tobytes() == b"".join(each)


def test_devices():
    assert not work.described(90, ATTRIBUTES[90], (13, 0), False).engine
    assert [arch for arch, device in DEVICES.items() if device.engine] == [90]
