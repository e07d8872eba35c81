"""Stride phases without taps in the copy engine's kernels, and maps that the driver refuses."""

import fake_cupy
import numpy as np
import pytest
from gpus import ATTRIBUTES
from operations import integer_tensors
from problems import parse
from sim import tensor_maps
from simulated import CHANNELS_LAST, H200, Case, task_without_memory

import convgrad_cy as cg
from bench.gpu import forced
from convgrad_cy.gpu import families, mma, tensor_map, tiles

#: Layers whose kernel is smaller than the stride on an axis, on arrays that are longer than the reach of a corner.
SHORTCUTS = (
    'mb2ic64id64ih64iw64oc128kd1sd2n"volume"',
    'mb2ic64id36ih36iw36oc128kd1sd2n"small_volume"',
    'mb2ic64id16ih112iw112oc128kd1kh1kw1sd1sh2sw2n"video"',
    'mb2ic256ih512iw512oc512kh1sh2n"image"',
    'mb2ic256ih260iw260oc512kh1sh2n"image_beyond_a_corner"',
    'mb2ic64ih260iw260oc64kh2kw1sh2sw2n"along_one_axis"',
    'mb8ic512iw80000oc128kw1sw2n"line"',
)


@pytest.mark.parametrize("text", SHORTCUTS)
@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_the_driver_takes_the_maps_of_phases_without_taps(dtype, text):
    task = task_without_memory("dgrad", parse(text), dtype, formats=CHANNELS_LAST)
    (launch,) = families.plan(task).launches
    assert launch.source == "mma_engine.cu"
    assert tensor_maps.encoded(launch.maps, [1 << 20] * len(launch.pointers))


@pytest.mark.simulator
@pytest.mark.parametrize(
    "text",
    (
        'mb1ic16id40ih3iw3oc16od20oh2ow2kd1kh1kw1sd2sh2sw2n"volume"',
        'mb1ic16ih270iw4oc16oh135ow2kh1kw1sh2sw2n"image"',
    ),
)
def test_values_of_phases_without_taps(text):
    problem = parse(text)
    tensors, expected = integer_tensors(problem, "bfloat16")
    case = Case("dgrad", problem, tensors, formats=CHANNELS_LAST, device=H200._replace(processors=2))
    tile = next(one for one in tiles._BY_ENGINE if (one.rows, one.columns) == (128, 64))
    with forced.taking("mma", forced.Product(tile, 1)):
        plan = mma.launches(case.task)
    assert [launch.source for launch in plan.launches] == ["mma_engine.cu"]
    np.testing.assert_array_equal(case.run(plan).astype(float), expected["dgrad"])


class Refusing:
    """A driver that makes no map."""

    def __getattr__(self, name):
        return lambda *arguments: 1


def channels_last(tensor):
    return np.ascontiguousarray(np.moveaxis(tensor, 1, -1))


@pytest.mark.simulator
@pytest.mark.parametrize("refuses", (False, True))
def test_a_refusal_of_the_driver_selects_other_kernels(monkeypatch, refuses):
    """If the driver refuses a map, the call must use kernels without the copy engine. Its results must be right."""
    monkeypatch.setattr(fake_cupy.Device, "attributes", {**ATTRIBUTES[90], "MultiProcessorCount": 2})
    fake_cupy.install(monkeypatch)
    if refuses:
        monkeypatch.setattr(tensor_map, "_driver", lambda: Refusing())
    problem = parse('mb8ic128ih8oc128kh1n"dense"')
    tensors, expected = integer_tensors(problem, "bfloat16")
    x, w, dy = (fake_cupy.array(channels_last(tensor)).transpose(0, 3, 1, 2) for tensor in tensors)
    dx, dw = (fake_cupy.array(channels_last(tensor)).transpose(0, 3, 1, 2) for tensor in tensors[:2])
    cg.conv_backward(dy, x, w, **problem.keywords, out=(dx, dw))
    assert any("#define ENGINE 1" in text for text in fake_cupy.compiled) != refuses
    np.testing.assert_array_equal(dx.get().astype(float), expected["dgrad"])
    np.testing.assert_array_equal(dw.get().astype(float), expected["wgrad"])
