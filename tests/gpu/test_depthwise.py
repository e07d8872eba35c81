"""Depthwise convolutions and groups of few channels: whole vectors, loops over images and strips.

test_variants.py tests every shape of a thread.
"""

import numpy as np
import nvrtc
import pytest
from nonfinite import check_nonfinite
from operations import DTYPES, FLOATS, bits, integer_tensors
from problems import PROBLEMS, parse
from sim.executor import SCHEDULES
from simulated import CHANNELS_FIRST, CHANNELS_LAST, H200, OPERATIONS, Case, task_without_memory

from convgrad_cy.gpu import depthwise, module

simulator = pytest.mark.simulator
kernels = pytest.mark.parametrize("kernel", OPERATIONS)
LAYOUTS = (CHANNELS_FIRST, CHANNELS_LAST)

#: Problems beyond problems.txt: whole vectors of every type in both layouts, and variations of the walk.
SHAPES = {
    problem.name: problem
    for problem in map(
        parse,
        (
            'mb3g16ic16ih9iw16oc16kh3ph1n"vectors"',
            'mb3g16ic16ih9iw32oc16ow16kh3sh2ph1n"vectors_stride2"',
            'mb2g16ic16iw40ow40oc16kw4pw3n"causal"',
            'mb2g8ic8iw24oc8kw11pw5n"long_row_of_taps"',
            'mb2g8ic8iw40oc8kw3sw9pw1n"stride_beyond_the_window"',
            'mb2g8ic8iw40oc8kw3dw15pw16n"dilation_beyond_the_window"',
            'mb2g6ic24ih5iw8oc24kh3ph1n"groups_of_4"',
            'mb2g3ic24ih5iw8oc24kh3ph1n"groups_of_8"',
            'mb2g4ic8ih5iw8oc32kh3ph1n"groups_2_to_8"',
            'mb2g4ic4ih5iw8oc32kh3ph1n"multiplier8"',
            'mb1g16ic16id3ih4iw8oc16kd3pd1n"volume"',
        ),
    )
}


@simulator
@pytest.mark.slow
@kernels
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, dtype, kernel):
    """Results must be exact, in both layouts and each order of warps, with several images in a block or few splits."""
    problem = SHAPES[name]
    tensors, results = integer_tensors(problem, dtype)
    for formats in LAYOUTS:
        for processors in (1, 132):
            case = Case(kernel, problem, tensors, formats=formats, device=H200._replace(processors=processors))
            assert depthwise.suits(case.task)
            plan = depthwise.launches(case.task)
            first = case.run(plan)
            np.testing.assert_array_equal(first.astype(np.float64), results[kernel])
        assert all(bits(case.run(plan, schedule, 7)) == bits(first) for schedule in SCHEDULES[1:])


@simulator
@pytest.mark.slow
@kernels
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ("2d_depthwise", "2d_groups3_stride2", "2d_depthwise_multiplier3", "1d_groups"))
def test_nonfinite(name, dtype, kernel):
    for formats in LAYOUTS:
        check_nonfinite(depthwise, kernel, PROBLEMS[name], dtype, formats=formats)


@simulator
@kernels
def test_nonfinite_beyond_a_row(kernel):
    """A strip that ends beyond its row must not multiply the values there."""
    for formats in LAYOUTS:
        check_nonfinite(depthwise, kernel, parse('mb2g8ic8iw13oc8kw3n"unpadded_tail"'), "float32", formats=formats)


LAYERS = {
    "3x3": 'mb32g144ic144ih56oc144kh3ph1n"x"',
    "3x3_stride2": 'mb32g144ic144ih56oc144kh3sh2ph1n"x"',
    "7x7": 'mb32g384ic384ih14oc384kh7ph3n"x"',
    "causal": 'mb4g1536ic1536iw2048ow2048oc1536kw4pw3n"x"',
    "volume": 'mb2g64ic64id32oc64kd3pd1n"x"',
    "groups_of_4": 'mb32g32ic128ih56oc128kh3ph1n"x"',
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_wide_reads(dtype, layer):
    """With channels last, accesses must be as wide as possible if sums leave registers for it."""
    for kernel in OPERATIONS:
        task = task_without_memory(kernel, parse(LAYERS[layer]), dtype, formats=CHANNELS_LAST)
        macros = dict(depthwise.launches(task).launches[0].macros)
        width = min(int(macros[name]) for name in ("SOURCE_VECTOR", "TARGET_VECTOR")) * task.dtype.itemsize
        if layer in ("3x3", "3x3_stride2", "volume") or (layer == "causal" and task.dtype.itemsize > 2):
            assert width == 16
        else:
            assert width >= (4 if kernel == "wgrad" else 8)


@pytest.mark.tuning
@pytest.mark.parametrize("layer", LAYERS)
@kernels
def test_blocks_fill_the_gpu(layer, kernel):
    """All processors must have two blocks at once, as many as their registers allow."""
    for formats in LAYOUTS:
        task = task_without_memory(kernel, parse(LAYERS[layer]), "bfloat16", formats=formats)
        launch = depthwise.launches(task).launches[0]
        assert 128 <= np.prod(launch.block) <= 256
        assert launch.grid[0] >= 2 * task.device.processors


def test_what_is_left_to_matrix_products():
    for text in ('mb2ic8ih9oc8kh3n"dense"', 'mb2g2ic24ih9oc24kh3n"groups_of_12"', 'mb2g2ic4ih9oc48kh3n"multiplier12"'):
        assert not depthwise.suits(task_without_memory("fprop", parse(text), "float32"))
    task = task_without_memory("fprop", SHAPES["groups_of_4"], "float32")
    assert depthwise.suits(task)
    by_batch, by_group, *others = task.source.strides
    uneven = task.source._replace(strides=(2 * by_batch, 2 * by_group, *others))
    assert not depthwise.suits(task._replace(source=uneven))


@pytest.mark.skipif(nvrtc.disassembler() is None or nvrtc.why_missing() is not None, reason="NVRTC is not installed")
@pytest.mark.slow
@kernels
@pytest.mark.parametrize("layer", LAYERS)
def test_instructions(layer, kernel):
    """There must be no spills, and the accesses must be as wide as in the plan."""
    for dtype in ("float32", "bfloat16"):
        for formats in LAYOUTS:
            task = task_without_memory(kernel, parse(LAYERS[layer]), dtype, formats=formats)
            launch = depthwise.launches(task).launches[0]
            cubin, reports, log = nvrtc.compile(module.text(launch.source, launch.macros), "sm_90")
            assert reports[launch.kernel].spills == reports[launch.kernel].stack == 0, log
            macros, found = dict(launch.macros), nvrtc.sass(cubin)
            for instruction, name in (("LDG.E.128", "SOURCE_VECTOR"), ("STG.E.128", "TARGET_VECTOR")):
                if int(macros[name]) * task.dtype.itemsize == 16 and (kernel != "wgrad" or name == "SOURCE_VECTOR"):
                    assert instruction in found, f"{layer} {dtype} {formats}"
