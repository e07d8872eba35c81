"""The driver accepts all launches: all layers of the benchmark on every GPU, by the model of driver.py.

No kernel is compiled here: their needs are declared, and compared with the kernels of the simulator and of NVRTC.
"""

import re
import sys
from itertools import product
from pathlib import Path

import driver
import fake_cupy
import numpy as np
import nvrtc
import pytest
from gpus import ATTRIBUTES, DEVICES
from planned import PRECISIONS, planned
from problems import parse
from sim.executor import taken
from simulated import CHANNELS_FIRST, CHANNELS_LAST, OPERATIONS, task_without_memory

from convgrad_cy.gpu import families, gather, mma, tiles, work
from convgrad_cy.gpu.module import text
from convgrad_cy.gpu.plan import Launch

sys.path.append(str(Path(__file__).parents[2]))

from bench import suites
from bench.gpu import rows as gpu_rows

KB = 1 << 10
both_parts = work._ask_for_shared


def dynamic_part_alone(function, size):
    """A wrong rule for the requested shared memory. These tests have to see it."""
    if size > max(48 * KB, function.max_dynamic_shared_size_bytes):
        function.max_dynamic_shared_size_bytes = size


# ---- the needs of kernels ----


def declared(source, macros):
    """The declared attributes of a kernel, with the most registers that its launch bounds allow."""
    macros = dict(macros)
    if source == "simt.cu":
        rows, columns = (int(macros[f"TILE_{side}"]) // int(macros[f"THREAD_{side}"]) for side in ("ROWS", "COLUMNS"))
        threads = rows * columns
    else:
        threads = int(macros.get("THREADS", 256))
    static = {"depthwise.cu": 384}
    if source.startswith("mma"):
        names = ("TILE_ROWS", "TILE_COLUMNS", "BLOCKS", "WARPGROUPS", "ENGINE")
        tile = tiles.Tile(*(int(macros[name]) for name in names))
        threads = tile.threads
        static[source] = tiles.declared_bytes(tile, source == "mma_wgrad.cu")
    # A kernel without dynamic shared memory may declare all memory of a block: the compiler refuses more.
    return driver.Attributes(static.get(source, 48 * KB), driver.most_registers(threads), threads)


def of_every_kernel():
    """A launch of each kernel, and its declared attributes."""
    every = {**planned(86), **planned(86, gather.launches)}
    launches = {(launch.source, launch.kernel): launch for launch in every.values()}
    return [(launch, declared(launch.source, launch.macros)) for launch in launches.values()]


def is_as_declared(launch, said, shared):
    """Whether shared memory is as declared. It must be exact if dynamic shared memory is requested."""
    return shared == said.shared if launch.shared else shared <= said.shared


@pytest.mark.slow
@pytest.mark.simulator
def test_the_text_takes_what_is_declared():
    for launch, said in of_every_kernel():
        shared, threads = taken(text(launch.source, launch.macros), launch.kernel)
        assert is_as_declared(launch, said, shared) and threads == said.threads, launch


@pytest.mark.slow
@pytest.mark.skipif(nvrtc.why_missing() is not None, reason=str(nvrtc.why_missing()))
def test_the_compiled_kernel_takes_what_is_declared():
    for launch, said in of_every_kernel():
        _, reports, log = nvrtc.compile(text(launch.source, launch.macros), "sm_86")
        _, _, properties = log.partition(f"Function properties for {launch.kernel}\n")
        shared = re.search(r"(\d+) bytes smem", "\n".join(properties.splitlines()[:2]))
        assert is_as_declared(launch, said, int(shared[1] if shared else 0)), launch
        assert reports[launch.kernel].registers <= said.registers, launch


# ---- all layers ----


class Loaded(driver.Kernel):
    """A kernel that is launched and does nothing."""

    def __call__(self, grid, block, args, *, shared_mem=0):
        by_value = [argument for argument in args if isinstance(argument, np.ndarray)]
        launch = Launch("", (), "kernel", grid, block, shared_mem, (), ())
        size = 8 * (len(args) - len(by_value)) + sum(argument.nbytes for argument in by_value)
        self.check_launch(launch, fake_cupy.Device(), size)


@pytest.fixture
def gpu(monkeypatch):
    """A function that makes all devices of an architecture, with kernels as declared, and imaginary memory."""
    loaded = {}

    def function(source, macros, kernel, device):
        if (source, macros, kernel) not in loaded:
            loaded[source, macros, kernel] = Loaded(process, fake_cupy.Device(device), declared(source, macros))
        return loaded[source, macros, kernel]

    def made(arch):
        loaded.clear()
        work.device_of.cache_clear()
        monkeypatch.setattr(fake_cupy.Device, "compute_capability", str(arch))
        monkeypatch.setattr(fake_cupy.Device, "attributes", ATTRIBUTES[arch])
        assert work.device_of(0) == DEVICES[arch]

    process = driver.Driver()
    fake_cupy.install(monkeypatch)
    sys.modules["cupy"].cuda.alloc = lambda size: fake_cupy.MemoryPointer(None, 1 << 40, 0)
    monkeypatch.setattr(work, "_compile", lambda launches, device: None)
    monkeypatch.setattr(work, "_function", function)
    return made


ARRAYS = [fake_cupy.MemoryPointer(None, 1 << 30, 0)] * 3


def refusal(plan):
    """The reason why the driver refuses a plan, or None."""
    try:
        work.Work([(plan, (0, 1, 2))], 3, 0).run(*ARRAYS)
    except driver.DriverError as error:
        return str(error)
    return ""


def refusals(arch, layers, dtype, precision):
    """(refused plans of layers with the driver's reason, number of all launches)."""
    found, number = {}, 0
    for problem, operation, formats in product(layers, OPERATIONS, (CHANNELS_FIRST, CHANNELS_LAST)):
        plan = families.plan(task_without_memory(operation, problem, dtype, precision, formats, DEVICES[arch]))
        number += len(plan.launches)
        if reason := refusal(plan):
            found[problem.name, operation, formats] = reason
    return found, number


SUITES = [layer.problem for layer in suites.LAYERS]
GPU_LAYERS = [layer.problem for layer in gpu_rows.LAYERS]
types = pytest.mark.parametrize("dtype, precision", PRECISIONS, ids=lambda value: value)


@pytest.mark.parametrize(
    "arch, dtype, operations, tile",
    [
        (90, "float64", OPERATIONS, tiles.Tile(128, 64, 2)),
        (90, "bfloat16", OPERATIONS, tiles.Tile(128, 64, 2)),
        (86, "bfloat16", ("fprop", "dgrad"), tiles.Tile(128, 128, 2)),  # wgrad has 64 KB of stages there
    ],
    ids=("float64", "bfloat16", "bfloat16_sm_86"),
)
def test_stages_of_48_kb_have_to_be_asked_for(gpu, monkeypatch, arch, dtype, operations, tile):
    """Stages of 48 KB must be requested, because a block has more memory than its stages."""
    for module in (tiles, mma):
        monkeypatch.setattr(module, "tiles", lambda *_: (tile,))
    problem = parse('mb128ic256ih14oc256kh3ph1n"layer"')
    for operation in operations:
        plan = mma.launches(task_without_memory(operation, problem, dtype, device=DEVICES[arch]._replace(engine=False)))
        gpu(arch)
        monkeypatch.setattr(work, "_ask_for_shared", dynamic_part_alone)
        assert "49152 bytes of dynamic shared memory" in refusal(plan)
        monkeypatch.setattr(work, "_ask_for_shared", both_parts)
        assert refusal(plan) == ""


@types
@pytest.mark.parametrize("arch", (86, 90))
def test_layers_of_the_gpu_benchmark_launch(gpu, arch, dtype, precision):
    gpu(arch)
    found, number = refusals(arch, GPU_LAYERS, dtype, precision)
    assert not found
    assert number >= 6 * len(GPU_LAYERS)


@pytest.mark.slow
@types
@pytest.mark.parametrize("arch", DEVICES)
def test_layers_of_all_suites_launch(gpu, arch, dtype, precision):
    gpu(arch)
    assert not refusals(arch, SUITES + GPU_LAYERS, dtype, precision)[0]


def test_a_wrong_rule_is_seen(gpu, monkeypatch):
    """A wrong rule must be seen in layers of the benchmark, too."""
    monkeypatch.setattr(work, "_ask_for_shared", dynamic_part_alone)
    for arch, dtype in ((90, "float64"), (86, "bfloat16")):
        gpu(arch)
        assert refusals(arch, GPU_LAYERS, dtype, "high")[0], (arch, dtype)
