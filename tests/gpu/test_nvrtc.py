"""Every kernel through the compiler that CuPy uses: that it compiles, keeps all in registers, and what it became."""

import re
from pathlib import Path

import nvrtc
import pytest
from planned import compiled

from convgrad_cy import gpu
from convgrad_cy.gpu import module

pytestmark = [
    pytest.mark.slow(whole=True),
    pytest.mark.skipif(nvrtc.why_missing() is not None, reason=str(nvrtc.why_missing())),
    pytest.mark.skipif(nvrtc.disassembler() is None, reason="nvidia-cuda-cuobjdump and -nvdisasm are not installed"),
]

SOURCES = sorted(path.name for path in Path(gpu.__file__).parent.glob("*.cu"))
ARCHITECTURES = {"sm_75": 75, "sm_80": 80, "sm_86": 86, "sm_89": 89, "sm_90": 90, "sm_90a": 90}
#: The one for which all is compiled; of the others, whose texts are much the same, every eighth.
MAIN = "sm_90a"
#: Those whose instructions are looked at, in every fourth of the texts of the first.
DISASSEMBLED = {"sm_90a": 4, "sm_80": 1}
#: Registers of a multiprocessor, which are given to a warp in portions.
REGISTERS, PORTION = 65536, 256
#: Instructions that a kernel is made for, by source and element type; a cubin must have all of them.
INSTRUCTIONS = {
    ("mma.cu", "f16"): ["HMMA.16816.F32 ", r"LDGSTS.*128", r"LDSM.16.M88.4"],
    ("mma.cu", "bf16"): ["HMMA.16816.F32.BF16", r"LDGSTS.*128", r"LDSM.16.M88.4"],
    ("mma.cu", "double"): ["DMMA", r"LDGSTS.*128"],
    ("mma_wgrad.cu", "f16"): ["HMMA.16816.F32 ", r"LDGSTS.*128", r"LDSM.16.MT88.4"],
    ("mma_wgrad.cu", "bf16"): ["HMMA.16816.F32.BF16", r"LDGSTS.*128", r"LDSM.16.MT88.4"],
    ("mma_wgrad.cu", "double"): ["DMMA", r"LDGSTS.*128"],
    ("simt.cu", "float"): ["FFMA", r"LDS.*128"],
    ("simt.cu", "f16"): ["FFMA", r"LDS.*128"],
    ("simt.cu", "bf16"): ["FFMA", r"LDS.*128"],
    ("simt.cu", "double"): ["DFMA", r"LDS.*128"],
    ("simt.cu", "int"): ["IMAD", r"LDS.*128"],
}


def type_of(macros):
    return dict(macros).get("ELEMENT") or dict(macros).get("PACKED") or dict(macros)["STORAGE"]


def texts_of(arch, source):
    """What is compiled of a source for this architecture, those of one type beside each other."""
    some = [one for one in compiled(ARCHITECTURES[arch]) if one[0] == source]
    if not some:
        pytest.skip(f"{source} is not for {arch}")
    return sorted(some, key=lambda one: (type_of(one[2]), one[1:3]))[:: 1 if arch == MAIN else 8]


def instructions_missing(cubin, source, macros):
    """What tensor cores, asynchronous copies and accesses of 16 bytes are called there; and nothing in local memory."""
    found = nvrtc.sass(cubin)
    if re.search(r"\b(LDL|STL)\b", found):
        yield f"{dict(macros)} is in local memory"
    for instruction in INSTRUCTIONS.get((source, type_of(macros)), ()):
        if not re.search(instruction, found):
            yield f"{dict(macros)} is without {instruction}"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_compiles(arch, source):
    wrong = []
    for i, (_, kernel, macros, threads) in enumerate(texts_of(arch, source)):
        cubin, reports, log = nvrtc.compile(module.text(source, macros), arch)
        assert kernel in reports, log
        report = reports[kernel]
        needed = -(-(threads or 0) // 32) * -(-report.registers * 32 // PORTION) * PORTION
        if report.spills or report.stack or needed > REGISTERS:
            wrong.append(f"{report}, {threads} threads: {dict(macros)}")
        if arch in DISASSEMBLED and i % DISASSEMBLED[arch] == 0:
            wrong += instructions_missing(cubin, source, macros)
    assert not wrong, "\n".join(wrong)
