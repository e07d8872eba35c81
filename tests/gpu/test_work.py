"""The joining, compilation and execution of plans, seen from the launches."""

import sys
from threading import Barrier, Thread, get_ident
from types import SimpleNamespace

import fake_cupy
import pytest
from gpus import ATTRIBUTES
from problems import parse
from simulated import CHANNELS_LAST, OPERATIONS, task_without_memory

from convgrad_cy.gpu import families, work
from convgrad_cy.gpu.joined import joined
from convgrad_cy.gpu.module import is_grouped
from convgrad_cy.gpu.plan import WORKSPACE, Device, Launch, Plan

DENSE = parse('mb8ic256ih28oc256kh3ph1n"dense"')


def launch(kernel, *pointers, shared=0, macros=()):
    return Launch("some.cu", macros, kernel, (1, 2, 3), (32, 1, 1), shared, pointers, (1, -2, 3))


class Recorder:
    """A stand-in for a compiled kernel, with ``shared_size_bytes`` of static shared memory."""

    def __init__(self, shared_size_bytes=256):
        self.shared_size_bytes, self.limits = shared_size_bytes, []
        self.preferred_shared_memory_carveout = -1
        self.calls = []

    @property
    def max_dynamic_shared_size_bytes(self):
        return self.limits[-1] if self.limits else 48 << 10

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size):
        self.limits.append(size)

    def __call__(self, grid, block, args, shared_mem):
        self.calls.append((grid, block, [getattr(arg, "ptr", arg) for arg in args[:-1]], args[-1], shared_mem))


@pytest.fixture
def kernels(monkeypatch):
    fake_cupy.install(monkeypatch)
    made = {}
    monkeypatch.setattr(work, "_compile", lambda launches, device: None)
    monkeypatch.setattr(work, "_function", lambda source, macros, name, device: made.setdefault(name, Recorder()))
    return made


def test_operands_and_workspaces_get_the_numbers_of_the_call():
    plan = Plan((launch("a", 0, WORKSPACE + 1), launch("b", WORKSPACE + 1, 1, WORKSPACE, 2)), (10, 20, 30))
    assert joined([(plan, (5, 4, 3))], 6) == Plan((launch("a", 5, 6), launch("b", 6, 4, 7, 3)), (20, 10))


def test_what_two_plans_pack_in_the_same_way_is_packed_once():
    first = Plan((launch("pack", 0, WORKSPACE), launch("one", WORKSPACE, 1, 2)), (10,))
    second = Plan(
        (launch("pack", 0, WORKSPACE), launch("pack", 2, WORKSPACE + 1), launch("two", WORKSPACE, WORKSPACE + 1, 1)),
        (40, 10),
    )
    whole = joined([(first, (0, 2, 3)), (second, (1, 4, 0))], 5)
    assert whole.launches == (
        launch("pack", 0, 5),
        launch("one", 5, 2, 3),
        launch("pack", 1, 6),
        launch("two", 6, 5, 4),
    )
    assert whole.workspaces == (10, 40)


def test_another_way_of_packing_is_not_shared():
    first = Plan((launch("pack", 0, WORKSPACE), launch("one", WORKSPACE, 1, 2)), (10,))
    second = Plan((launch("pack", 2, WORKSPACE, macros=(("A", "1"),)), launch("two", 0, WORKSPACE, 1)), (10,))
    whole = joined([(first, (0, 2, 3)), (second, (1, 4, 0))], 5)
    assert [made.kernel for made in whole.launches] == ["pack", "one", "pack", "two"]
    assert whole.workspaces == (10, 10)


def test_workspaces_do_not_share_memory(kernels):
    plan = Plan((launch("k", 0, WORKSPACE, WORKSPACE + 1, 2),), (1000, 24))
    made = work.Work([(plan, (0, 1, 2))], 3, 0)
    made.run("source", "filter", "target")
    ((grid, block, (source, one, other, target), arguments, shared),) = kernels["k"].calls
    assert (grid, block, shared, source, target) == ((1, 2, 3), (32, 1, 1), 0, "source", "target")
    assert one % 512 == 0 and other - one == 1024
    assert arguments.size == 1 and arguments.tobytes() == b"".join(
        n.to_bytes(8, "little", signed=True) for n in (1, -2, 3)
    )


def test_a_captured_call_keeps_its_workspaces(kernels, monkeypatch):
    """The workspaces must be kept: a graph uses them again at each launch."""
    monkeypatch.setattr(work, "_CAPTURED", [])
    made = work.Work([(Plan((launch("k", 0, WORKSPACE, 2),), (8,)), (0, 1, 2))], 3, 0)
    made.run(None, None, None)
    assert work._CAPTURED == []
    with fake_cupy.Stream() as stream:
        stream.begin_capture()
        made.run(None, None, None)
        made.run(None, None, None)
    kept = {memory.ptr for memory in work._CAPTURED}
    assert kept == {call[2][1] for call in kernels["k"].calls[1:]} and len(kept) == 2
    work.release_captured()
    assert work._CAPTURED == []


def test_much_shared_memory_is_asked_for(kernels):
    """Static and dynamic memory together must be requested, and the carve-out with them."""
    kernels["none"] = Recorder(0)
    sizes = {"none": 48 << 10, "little": (48 << 10) - 256, "both": 48 << 10, "much": 100 << 10}
    launches = tuple(launch(name, 0, shared=size) for name, size in sizes.items())
    work.Work([(Plan(launches), (0, 1, 2))], 3, 0)
    assert {name: kernels[name].limits for name in sizes} == {
        "none": [],
        "little": [],
        "both": [48 << 10],
        "much": [100 << 10],
    }
    assert [kernels[name].preferred_shared_memory_carveout for name in sizes] == [-1, -1, 100, 100]
    work.Work([(Plan((launch("much", 0, shared=60 << 10),)), (0, 1, 2))], 3, 0)
    assert kernels["much"].max_dynamic_shared_size_bytes == 100 << 10, "the earlier work needs it still"


# ---- modules ----


@pytest.fixture
def compiler(monkeypatch):
    """A stand-in for NVRTC: ``seen`` has each text with the device and the thread of its compilation."""
    fake_cupy.install(monkeypatch)
    made = SimpleNamespace(seen=[], before=lambda code: None)

    def compile(code, options):
        made.seen.append((code, fake_cupy.Device().id, get_ident()))
        made.before(code)
        return code.encode()

    monkeypatch.setattr(work, "text", lambda source, macros: f"{source} {dict(macros)}")
    monkeypatch.setattr(work.compiler, "compiled", compile)
    monkeypatch.setattr(fake_cupy.RawModule, "get_function", lambda module, name: Recorder())
    return made


def modules(*names):
    """The parts of a work whose launches need these modules."""
    return [(Plan(tuple(launch("k", 0, macros=((name, "1"),)) for name in names)), (0, 1, 2))]


@pytest.mark.parametrize("device", (0, 1))
def test_modules_of_a_call_are_compiled_side_by_side(compiler, monkeypatch, device):
    monkeypatch.setattr(work.os, "cpu_count", lambda: 8)
    together = Barrier(3, timeout=30)
    compiler.before = lambda code: together.wait()  # none continues before all have begun
    work.Work(modules("A", "B", "A", "C"), 3, device)
    codes, devices, threads = zip(*compiler.seen, strict=True)
    assert sorted(codes) == [f"some.cu {{'{name}': '1'}}" for name in "ABC"]
    assert set(devices) == {device} and len(set(threads)) == 3
    assert fake_cupy.Device().id == 0


def test_what_is_compiled_is_kept(compiler):
    """Modules must be kept for each device, and their files for all. A single module must need no other thread."""
    work.Work(modules("A", "B"), 3, 0)
    del compiler.seen[:]
    work.Work(modules("B", "A"), 3, 0)
    assert compiler.seen == []
    work.Work(modules("A", "C"), 3, 0)
    assert compiler.seen == [("some.cu {'C': '1'}", 0, get_ident())]
    work.Work(modules("A"), 3, 1)
    assert len(compiler.seen) == 1 and len(work._MODULES) == 4


@pytest.mark.parametrize("names", (("WRONG",), ("A", "WRONG", "WORSE", "B")))
def test_an_error_of_the_compiler_is_that_of_the_first_module(compiler, names):
    def compile(code):
        if "WRONG" in code or "WORSE" in code:
            raise RuntimeError(code)

    compiler.before = compile
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"^some\.cu {'WRONG': '1'}$"):
            work.Work(modules(*names), 3, 0)
    compiler.before = lambda code: None
    work.Work(modules(*names), 3, 0).run(None, None, None)


def test_no_compiler(compiler, monkeypatch):
    def missing():
        raise RuntimeError("no libnvrtc.so.13")

    monkeypatch.setattr(sys.modules["cupy"].cuda.nvrtc, "getVersion", missing)
    for names in (("A",), ("A", "B")):
        with pytest.raises(ImportError, match=r"^CuPy must find NVRTC.*\(CuPy says: no libnvrtc.so.13\)"):
            work.Work(modules(*names), 3, 0)


def test_works_are_made_in_several_threads(compiler):
    """Works must be made in several threads from the same modules, at the same time."""
    together, made = Barrier(4, timeout=30), []

    def make():
        together.wait()
        made.append(work.Work(modules("A", "B", "C"), 3, 0))

    threads = [Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in made:
        one.run(None, None, None)
    assert len(made) == 4 and len(work._MODULES) == 3


# ---- facts about a device ----


def test_a_device(monkeypatch):
    fake_cupy.install(monkeypatch)
    device = work.device_of(0)
    assert device[:3] == (90, 132, 227 << 10)
    # 4.9 TB/s at 1.98 GHz, divided among 132 multiprocessors.
    assert device.memory_bytes == pytest.approx(4.917e12 / 1.98e9 / 132, rel=1e-3)


@pytest.mark.parametrize("name", ("MemoryClockRate", "GlobalMemoryBusWidth", "ClockRate"))
@pytest.mark.parametrize("said", ("nothing", 0, -1))
def test_a_device_that_does_not_tell_its_memory(name, said):
    attributes = {**ATTRIBUTES[90], name: said}
    if said == "nothing":
        del attributes[name]
    assert work.described(90, attributes, (13, 0), True) == Device(90, 132, 227 << 10, None, True, True)


@pytest.mark.parametrize("nvrtc, grouped", [((0, 0), False), ((12, 3), False), ((12, 4), True), ((13, 0), True)])
def test_a_compiler_that_is_not_known_to_compile_warpgroups(nvrtc, grouped):
    """Without NVRTC, and with an older one than the tests', the plans must use kernels of sm_90."""
    device = work.described(90, ATTRIBUTES[90], nvrtc, True)
    assert (device.grouped, device.engine) == (grouped, grouped)
    for kernel in OPERATIONS:
        task = task_without_memory(kernel, DENSE, "bfloat16", formats=CHANNELS_LAST, device=device)
        launches = families.plan(task).launches
        assert any(launch.source.startswith("mma") for launch in launches)
        assert any(is_grouped(launch.macros) for launch in launches) == grouped


def test_no_compiler_for_a_device(monkeypatch):
    """A device must be described without NVRTC, too. The first compilation reports that it is missing."""
    fake_cupy.install(monkeypatch)

    def missing():
        raise OSError("libnvrtc.so.12")

    monkeypatch.setattr(sys.modules["cupy"].cuda.nvrtc, "getVersion", missing)
    assert not work.device_of(0).grouped
    assert work.device_of(0).arch == 90
