"""The plans for an older NVRTC compile with it. CONVGRAD_CY_NVRTCS has a folder of pip's --target for each version."""

import nvrtc
import pytest
from gpus import ATTRIBUTES
from problems import parse
from simulated import CHANNELS_FIRST, CHANNELS_LAST, task_without_memory

from convgrad_cy.gpu import compiler, families, gather, module, work

pytestmark = [
    pytest.mark.slow(whole=True),
    pytest.mark.skipif(not nvrtc.others(), reason="CONVGRAD_CY_NVRTCS names no folder with other versions of NVRTC"),
]

DENSE = 'mb32ic256ih56oc256kh3ph1n"dense"'
STEM = 'mb128ic3ih224oc64kh7sh2ph3n"stem"'
DEPTHWISE = 'mb128g144ic144ih56oc144kh3ph1n"depthwise"'
#: Operation, layer, type and layout. Together they need every source.
CALLS = (
    ("dgrad", DENSE, "bfloat16", CHANNELS_LAST),
    ("wgrad", DENSE, "bfloat16", CHANNELS_LAST),
    ("wgrad", DENSE, "float64", CHANNELS_FIRST),
    ("dgrad", STEM, "float16", CHANNELS_LAST),
    ("dgrad", DENSE, "int32", CHANNELS_FIRST),
    ("dgrad", DEPTHWISE, "bfloat16", CHANNELS_LAST),
    ("wgrad", DEPTHWISE, "float32", CHANNELS_FIRST),
)


def launches_of(device):
    """A launch of each kernel and each number of warpgroups."""
    chosen = {}
    for operation, layer, dtype, formats in CALLS:
        task = task_without_memory(operation, parse(layer), dtype, formats=formats, device=device)
        for launch in (*families.plan(task).launches, *gather.launches(task).launches):
            chosen.setdefault((launch.source, launch.kernel, module.is_grouped(launch.macros)), launch)
    return chosen.values()


@pytest.mark.parametrize("site", nvrtc.others(), ids=lambda site: site.parent.name)
def test_plans_compile(site):
    device = work.described(90, ATTRIBUTES[90], nvrtc.version(site), True)
    launches = launches_of(device)
    assert {launch.source for launch in launches} >= {"mma_wgrad.cu", "simt.cu", "depthwise.cu", "pack.cu", "gather.cu"}
    assert device.grouped and any(module.is_grouped(launch.macros) for launch in launches)
    for launch in launches:
        text, arch = module.text(launch.source, launch.macros), compiler.options_of(90, launch.macros)[-1]
        _, reports, log = nvrtc.compile(text, arch.removeprefix("-arch="), site)
        assert launch.kernel in reports, log
        assert not reports[launch.kernel].spills, launch
