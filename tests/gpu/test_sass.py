"""NVRTC's output for the important kernels: budgets close to the present numbers, so that no growth stays unseen."""

import re
from collections import Counter
from typing import NamedTuple

import nvrtc
import pytest
from planned import DEVICES
from problems import parse
from simulated import CHANNELS_FIRST, CHANNELS_LAST, task_without_memory

from convgrad_cy.gpu import families, module

pytestmark = [
    pytest.mark.slow(whole=True),
    pytest.mark.skipif(nvrtc.why_missing() is not None, reason=str(nvrtc.why_missing())),
    pytest.mark.skipif(nvrtc.disassembler() is None, reason="nvidia-cuda-cuobjdump and -nvdisasm are not installed"),
]

ARCHITECTURES = {"sm_80": 80, "sm_90a": 90}
#: More instructions than this multiple of the budget are an error.
TOLERANCE = 1.05
#: Warps that a multiprocessor of these architectures holds, and bytes of a block's shared memory that the system takes.
_WARPS, _RESERVED = 64, 1024


class Budget(NamedTuple):
    """The budget of one kernel."""

    instructions: int  # today
    calls: int  # at most
    stores: str  # to global memory, all ways
    registers: int  # at most
    blocks: int  # at least, together on a multiprocessor


DENSE = 'mb32ic256ih56oc256kh3ph1n"dense"'
STEM = 'mb128ic3ih224oc64kh7sh2ph3n"stem"'
DEPTHWISE = 'mb128g144ic144ih56oc144kh3ph1n"depthwise"'
#: Source, operation, layer, type, precision and layout of a launch of the kernel.
KERNELS = {
    "mma bfloat16": ("mma.cu", "dgrad", DENSE, "bfloat16", "high", CHANNELS_LAST),
    "mma_engine bfloat16": ("mma_engine.cu", "dgrad", DENSE, "bfloat16", "high", CHANNELS_LAST),
    "mma float32": ("mma.cu", "dgrad", DENSE, "float32", "high", CHANNELS_LAST),
    "mma float64": ("mma.cu", "dgrad", DENSE, "float64", "high", CHANNELS_LAST),
    "mma bfloat16 narrow": ("mma.cu", "dgrad", STEM, "bfloat16", "high", CHANNELS_LAST),
    "mma float32 narrow": ("mma.cu", "dgrad", STEM, "float32", "high", CHANNELS_LAST),
    "spread bfloat16": ("spread.cu", "dgrad", STEM, "bfloat16", "high", CHANNELS_LAST),
    "mma_wgrad bfloat16": ("mma_wgrad.cu", "wgrad", DENSE, "bfloat16", "high", CHANNELS_LAST),
    "mma_wgrad with engine": ("mma_wgrad.cu", "wgrad", DENSE, "bfloat16", "high", CHANNELS_LAST),
    "mma_wgrad float32": ("mma_wgrad.cu", "wgrad", DENSE, "float32", "high", CHANNELS_LAST),
    "mma_wgrad float64": ("mma_wgrad.cu", "wgrad", DENSE, "float64", "high", CHANNELS_LAST),
    "transpose bfloat16": ("transpose.cu", "wgrad", DENSE, "bfloat16", "high", CHANNELS_FIRST),
    "transpose float32": ("transpose.cu", "wgrad", DENSE, "float32", "high", CHANNELS_FIRST),
    "pack bfloat16": ("pack.cu", "dgrad", DENSE, "bfloat16", "high", CHANNELS_FIRST),
    "reduce bfloat16": ("reduce.cu", "wgrad", DENSE, "bfloat16", "high", CHANNELS_LAST),
    "simt float32": ("simt.cu", "dgrad", DENSE, "float32", "ieee", CHANNELS_LAST),
    "depthwise bfloat16": ("depthwise.cu", "dgrad", DEPTHWISE, "bfloat16", "high", CHANNELS_LAST),
    "depthwise_wgrad bfloat16": ("depthwise_wgrad.cu", "wgrad", DEPTHWISE, "bfloat16", "high", CHANNELS_LAST),
}
BUDGETS = {
    "mma bfloat16": {
        "sm_80": Budget(3240, 12, "STG.E.128 STG.E.U16", 254, 2),
        "sm_90a": Budget(3213, 5, "STG.E.128 STG.E.U16", 254, 1),
    },
    "mma_engine bfloat16": {
        "sm_90a": Budget(4137, 20, "STG.E.128", 168, 1),
    },
    "mma float32": {
        "sm_80": Budget(3410, 10, "STG.E STG.E.128", 254, 1),
        "sm_90a": Budget(3630, 5, "STG.E STG.E.128", 255, 2),
    },
    "mma float64": {
        "sm_80": Budget(2847, 7, "STG.E.128 STG.E.64", 252, 2),
        "sm_90a": Budget(2887, 4, "STG.E.128 STG.E.64", 254, 2),
    },
    "mma bfloat16 narrow": {
        "sm_80": Budget(3137, 12, "STG.E.128 STG.E.U16", 216, 2),
        "sm_90a": Budget(3260, 5, "STG.E.128 STG.E.U16", 218, 2),
    },
    "mma float32 narrow": {
        "sm_80": Budget(2839, 10, "STG.E STG.E.128", 194, 1),
        "sm_90a": Budget(3026, 5, "STG.E STG.E.128", 192, 2),
    },
    "spread bfloat16": {
        "sm_80": Budget(546, 0, "STG.E.128", 30, 8),
        "sm_90a": Budget(586, 0, "STG.E.128", 32, 8),
    },
    "mma_wgrad bfloat16": {
        "sm_80": Budget(5359, 29, "STG.E STG.E.64", 239, 2),
        "sm_90a": Budget(6133, 9, "STG.E STG.E.64", 239, 1),
    },
    "mma_wgrad with engine": {
        "sm_90a": Budget(5412, 9, "STG.E STG.E.64", 168, 1),
    },
    "mma_wgrad float32": {
        "sm_80": Budget(3846, 10, "STG.E STG.E.64", 242, 1),
        "sm_90a": Budget(4096, 1, "STG.E STG.E.64", 246, 2),
    },
    "mma_wgrad float64": {
        "sm_80": Budget(3708, 27, "STG.E.128 STG.E.64", 198, 2),
        "sm_90a": Budget(3971, 9, "STG.E.128 STG.E.64", 220, 2),
    },
    "transpose bfloat16": {
        "sm_80": Budget(689, 0, "STG.E.128 STG.E.64", 42, 5),
        "sm_90a": Budget(717, 0, "STG.E.128 STG.E.64", 32, 8),
    },
    "transpose float32": {
        "sm_80": Budget(1362, 1, "STG.E.128 STG.E.64", 42, 5),
        "sm_90a": Budget(1389, 0, "STG.E.128 STG.E.64", 34, 6),
    },
    "pack bfloat16": {
        "sm_80": Budget(833, 0, "STG.E.128", 32, 8),
        "sm_90a": Budget(866, 0, "STG.E.128", 32, 8),
    },
    "reduce bfloat16": {
        "sm_80": Budget(350, 0, "STG.E.U16", 40, 6),
        "sm_90a": Budget(380, 0, "STG.E.U16", 32, 8),
    },
    "simt float32": {
        "sm_80": Budget(2751, 4, "STG.E", 128, 2),
        "sm_90a": Budget(2890, 0, "STG.E", 127, 2),
    },
    "depthwise bfloat16": {
        "sm_80": Budget(1472, 5, "STG.E.64 STG.E.U16", 115, 2),
        "sm_90a": Budget(1502, 0, "STG.E.128 STG.E.U16", 126, 2),
    },
    "depthwise_wgrad bfloat16": {
        "sm_80": Budget(3787, 9, "STG.E", 88, 2),
        "sm_90a": Budget(3942, 0, "STG.E", 96, 2),
    },
}


def launch_of(name, arch):
    source, kernel, layer, dtype, precision, formats = KERNELS[name]
    device = DEVICES[arch]._replace(engine="engine" in name)
    task = task_without_memory(kernel, parse(layer), dtype, precision, formats, device)
    return next(launch for launch in families.plan(task).launches if launch.source == source)


def resident_blocks(launch, report, device):
    """The number of blocks that have room on a multiprocessor together."""
    warps = -(-launch.block[0] * launch.block[1] * launch.block[2] // 32)
    shared = launch.shared + report.shared + _RESERVED
    return min(min(report.warps, _WARPS) // warps, (device.shared_bytes + _RESERVED) // shared)


def opcodes(cubin):
    """The count of each instruction, without the ones that fill up the end."""
    found = Counter(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", nvrtc.sass(cubin), re.M))
    del found["NOP"]
    return found


@pytest.mark.parametrize("name, arch", [(name, arch) for name, archs in BUDGETS.items() for arch in archs])
def test_budget(arch, name):
    launch = launch_of(name, ARCHITECTURES[arch])
    cubin, reports, log = nvrtc.compile(module.text(launch.source, launch.macros), arch)
    report, found, budget = reports[launch.kernel], opcodes(cubin), BUDGETS[name][arch]
    has = Budget(
        sum(found.values()),
        sum(count for opcode, count in found.items() if opcode.startswith("CALL")),
        " ".join(sorted(opcode for opcode in found if opcode.startswith("STG"))),
        report.registers,
        resident_blocks(launch, report, DEVICES[ARCHITECTURES[arch]]),
    )
    assert report.spills == report.stack == 0, log
    assert has.instructions <= TOLERANCE * budget.instructions, has
    assert has.calls <= budget.calls, has
    assert has.stores == budget.stores, has
    assert has.registers <= budget.registers, has
    assert has.blocks >= budget.blocks, has


#: Instructions of the loop that forms a spoiled row of mma_wgrad.cu again, for the terms of a column at a position. The
#: loop has four positions of a chunk of columns. One thread for each sum would take 148.
MOST_A_TERM = {"mma_wgrad with engine": 8, "mma_wgrad float32": 14}


def loops_of(cubin):
    """The instructions of each loop, inner and outer ones."""
    lines = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", nvrtc.sass(cubin), re.M)
    numbers = {int(address, 16): number for number, (address, _) in enumerate(lines)}
    for end, (address, instruction) in enumerate(lines):
        jump = re.search(r"BRA.*?0x([0-9a-f]+)", instruction)
        if jump and int(jump[1], 16) < int(address, 16):
            yield [instruction for _, instruction in lines[numbers[int(jump[1], 16)] : end + 1]]


@pytest.mark.parametrize("name", MOST_A_TERM)
def test_the_loop_over_spoiled_sums(name):
    launch = launch_of(name, 90)
    cubin, *_ = nvrtc.compile(module.text(launch.source, launch.macros), "sm_90a")
    positions, chunk, planes = 4, 8, int(dict(launch.macros)["PLANES"])
    loops = [
        loop for loop in loops_of(cubin) if sum("FFMA" in one for one in loop) == positions * chunk and len(loop) < 1000
    ]
    inner = min(loops, key=len)
    assert sum(bool(re.search(r"LDG\.E\.128", one)) for one in inner) == positions * planes
    assert not any("CALL" in one for one in inner)
    assert len(inner) <= MOST_A_TERM[name] * positions * chunk, len(inner)
