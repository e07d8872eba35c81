"""The launches of plans: all texts that the package compiles for problems of many kinds, without arrays."""

from functools import cache
from itertools import product
from math import prod
from zlib import crc32

from gpus import DEVICES
from operations import DTYPES
from problems import PROBLEMS, parse
from simulated import CHANNELS_FIRST, CHANNELS_LAST, OPERATIONS, task_without_memory

from convgrad_cy.gpu import families, gather, mma, reduce

#: Layers of real networks: large enough for the large tiles of every family.
LAYERS = [
    parse(line)
    for line in (
        'mb64ic3ih224oc64oh112kh7sh2ph3n"stem"',
        'mb64ic64ih56oc256oh56kh1n"expand"',
        'mb64ic64ih56oc64oh56kh3ph1n"body_64"',
        'mb64ic128ih56oc128oh28kh3sh2ph1n"body_stride2"',
        'mb64ic512ih7oc512oh7kh3ph1n"body_512"',
        'mb64ic64ih32oc3oh32kh4sh2ph1n"few_outputs"',
        'mb2ic64id64ih64iw64oc64od64kd3pd1n"volume"',
        'mb2ic32id32ih32iw32oc64od16kd3sd2pd1n"volume_stride2"',
        'mb8ic512iw4096oc256kw16sw8pw4n"upsampling"',
        'mb64g144ic144ih56oc144oh56kh3ph1n"depthwise"',
        'mb64g384ic384ih14oc384oh14kh7ph3n"depthwise_7x7"',
        'mb8g1024ic1024iw2048oc1024kw4pw3n"depthwise_causal"',
        'mb2g64ic64id32ih32iw32oc64od32kd3pd1n"depthwise_volume"',
        'mb64g32ic128ih56oc128oh56kh3ph1n"groups_of_4"',
        'mb64g8ic256ih28oc256oh28kh3ph1n"groups_of_32"',
    )
]
PRECISIONS = [(dtype, "high") for dtype in DTYPES] + [("float32", "medium"), ("float32", "ieee")]


@cache
def planned(arch, plan=families.plan):
    """The launches of all problems on a GPU of this architecture, one for each compiled text and kernel."""
    launches = {}
    for problem, kernel, formats, (dtype, precision) in product(
        [*LAYERS, *PROBLEMS.values()], OPERATIONS, (CHANNELS_FIRST, CHANNELS_LAST), PRECISIONS
    ):
        if problem.batch:
            task = task_without_memory(kernel, problem, dtype, precision, formats, DEVICES[arch])
            for launch in plan(task).launches:
                launches[launch.source, launch.kernel, launch.macros] = launch
    return launches


#: Macros for the size and the type of a kernel. The others choose between ways to read and to store.
_SIZES = {
    *("BLOCKS", "ELEMENT", "PARTIALS", "PLANES", "RESULT", "STAGES", "STORAGE", "WGRAD"),
    *("CHANNELS", "CHANNELS_LAST", "POSITIONS"),  # in depthwise.cu, the outputs of a thread
}
_SIZE_PREFIXES = ("TILE_", "THREAD_", "THREADS")


def _size_of(macros):
    return tuple((name, value) for name, value in macros if name in _SIZES or name.startswith(_SIZE_PREFIXES))


@cache
def compiled(arch):
    """(source, kernel, macros, threads of a block or None) of every type and size on this architecture.

    These are all ``variants`` that the families list, and one launch of each size in plans, which depend on the
    architecture.
    """
    chosen = {}
    for family in (*families.PREFERENCE, gather, reduce):
        if arch < 80 and family is mma:
            continue
        for source, kernel, macros in getattr(family, "variants", tuple)():
            chosen[source, kernel, macros] = None
    by_size = {}
    every = {**planned(arch), **planned(arch, gather.launches)}
    for source, kernel, macros in every:
        by_size.setdefault((source, kernel, _size_of(macros)), []).append(macros)
    for (source, kernel, _), alike in by_size.items():
        macros = min(alike, key=lambda macros: crc32(f"{arch} {macros}".encode()))
        chosen[source, kernel, macros] = prod(every[source, kernel, macros].block)
    return [(*key, threads) for key, threads in chosen.items()]
