"""Every kernel through CuPy's compiler: it compiles, keeps all in registers, and has the expected instructions."""

import re
from pathlib import Path
from time import process_time

import nvrtc
import pytest
from planned import compiled
from problems import parse
from simulated import CHANNELS_LAST, task_without_memory

from convgrad_cy import gpu
from convgrad_cy.gpu import families, module

pytestmark = [
    pytest.mark.slow(whole=True),
    pytest.mark.skipif(nvrtc.why_missing() is not None, reason=str(nvrtc.why_missing())),
    pytest.mark.skipif(nvrtc.disassembler() is None, reason="nvidia-cuda-cuobjdump and -nvdisasm are not installed"),
]

SOURCES = sorted(path.name for path in Path(gpu.__file__).with_name("cuda").glob("*.cu"))
ARCHITECTURES = {"sm_75": 75, "sm_80": 80, "sm_86": 86, "sm_89": 89, "sm_90": 90, "sm_90a": 90}
#: The architecture that compiles all texts. The others compile every eighth text, since their texts are similar.
MAIN = "sm_90a"
#: Architectures whose instructions are examined, in every fourth text of the first one.
DISASSEMBLED = {"sm_90a": 4, "sm_80": 1}
#: Instructions that a kernel is made for, by source and element type. A cubin must have all of them.
INSTRUCTIONS = {
    ("mma.cu", "f16"): ["HMMA.16816.F32 ", r"LDGSTS.*128", r"LDSM.16.M88.4"],
    ("mma.cu", "bf16"): ["HMMA.16816.F32.BF16", r"LDGSTS.*128", r"LDSM.16.M88.4"],
    ("mma.cu", "double"): ["DMMA", r"LDGSTS.*128"],
    ("mma_wgrad.cu", "f16"): ["HMMA.16816.F32 ", r"LDGSTS.*128", r"LDSM.16.MT88.4"],
    ("mma_wgrad.cu", "bf16"): ["HMMA.16816.F32.BF16", r"LDGSTS.*128", r"LDSM.16.MT88.4"],
    ("mma_wgrad.cu", "double"): ["DMMA", r"LDGSTS.*128"],
    ("mma.cu", "f16", "grouped"): ["HGMMA.*F32 ", r"LDGSTS.*128"],
    ("mma.cu", "bf16", "grouped"): ["HGMMA.*F32.BF16", r"LDGSTS.*128"],
    ("mma_wgrad.cu", "f16", "grouped"): ["HGMMA.*F32 ", r"LDGSTS.*128"],
    ("mma_wgrad.cu", "bf16", "grouped"): ["HGMMA.*F32.BF16", r"LDGSTS.*128"],
    ("mma_engine.cu", "f16", "engine"): ["HGMMA.*F32 ", r"UTMALDG.4D.IM2COL", r"UTMALDG.5D ", "USETMAXREG"],
    ("mma_engine.cu", "bf16", "engine"): ["HGMMA.*F32.BF16", r"UTMALDG.4D.IM2COL", r"UTMALDG.5D ", "USETMAXREG"],
    ("mma_wgrad.cu", "f16", "engine"): ["HGMMA.*F32 ", r"UTMALDG.4D.IM2COL", "USETMAXREG"],
    ("mma_wgrad.cu", "bf16", "engine"): ["HGMMA.*F32.BF16", r"UTMALDG.4D.IM2COL", "USETMAXREG"],
    ("transpose.cu", "f16"): [r"LDG\.E\.128", r"STS\.128", r"STG\.E\.128"],
    ("transpose.cu", "bf16"): [r"LDG\.E\.128", r"STS\.128", r"STG\.E\.128"],
    ("simt.cu", "float"): ["FFMA", r"LDS.*128"],
    ("simt.cu", "f16"): ["FFMA", r"LDS.*128"],
    ("simt.cu", "bf16"): ["FFMA", r"LDS.*128"],
    ("simt.cu", "double"): ["DFMA", r"LDS.*128"],
    ("simt.cu", "int"): ["IMAD", r"LDS.*128"],
}


def type_of(macros):
    return dict(macros).get("ELEMENT") or dict(macros).get("PACKED") or dict(macros)["STORAGE"]


def texts_of(arch, source):
    """The compiled texts of a source for this architecture, sorted by type."""
    some = [
        one
        for one in compiled(ARCHITECTURES[arch])
        if one[0] == source and (arch == MAIN or not module.is_grouped(one[2]))
    ]
    if not some:
        pytest.skip(f"{source} is not for {arch}")
    return sorted(some, key=lambda one: (type_of(one[2]), one[1:3]))[:: 1 if arch == MAIN else 8]


def instructions_missing(cubin, source, macros):
    """Messages on missing instructions of tensor cores, copies and 16-byte accesses, and on local memory."""
    found = nvrtc.sass(cubin)
    if re.search(r"\b(LDL|STL)\b", found):
        yield f"{dict(macros)} is in local memory"
    by_engine = dict(macros).get("ENGINE") == "1"
    kind = source, type_of(macros), *(["engine"] if by_engine else ["grouped"] if module.is_grouped(macros) else [])
    for instruction in INSTRUCTIONS.get(kind, ()):
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
        if report.spills or report.stack or -(-(threads or 0) // 32) > report.warps:
            wrong.append(f"{report}, {threads} threads: {dict(macros)}")
        if arch in DISASSEMBLED and i % DISASSEMBLED[arch] == 0:
            wrong += instructions_missing(cubin, source, macros)
    assert not wrong, "\n".join(wrong)


#: Seconds in which the modules of a first call compile, each in one of two threads.
MOST_SECONDS = 1.9


def seconds_of_two_threads(seconds):
    """Seconds of the busier one of two threads that take the modules, the longest first."""
    threads = [0.0, 0.0]
    for one in sorted(seconds, reverse=True):
        threads[threads.index(min(threads))] += one
    return max(threads)


def test_first_call_compiles_soon():
    """A first bfloat16 ``conv_backward``, channels last, must compile within MOST_SECONDS of processor time."""
    layer = parse('mb64ic64ih56oc64oh56kh3ph1n"body"')
    tasks = [task_without_memory(kernel, layer, "bfloat16", formats=CHANNELS_LAST) for kernel in ("dgrad", "wgrad")]
    modules = {(launch.source, launch.macros) for task in tasks for launch in families.plan(task).launches}
    assert sorted(source for source, _ in modules) == ["mma_engine.cu", "mma_wgrad.cu", "reduce.cu"]

    def seconds(text):
        begin = process_time()
        nvrtc.compile(text, MAIN)
        return process_time() - begin

    best = [min(seconds(module.text(*one)) for _ in range(3)) for one in modules]
    assert seconds_of_two_threads(best) <= MOST_SECONDS
