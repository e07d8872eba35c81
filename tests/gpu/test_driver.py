"""The model of the driver for tests of launches: its refusals, and calls that obey its rules."""

import gc
import sys
from functools import partial

import driver
import fake_cupy
import numpy as np
import pytest
from gpus import ATTRIBUTES, DEVICES
from operations import integer_tensors
from problems import PROBLEMS
from sim.executor import POISON

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.gpu import mma, tiles, work
from convgrad_cy.gpu.module import text
from convgrad_cy.gpu.plan import Launch

KB = 1 << 10


def kernel(static=0, registers=32, threads=1024, arch=90, process=None):
    device = fake_cupy.Device(0)
    device.attributes = ATTRIBUTES[arch]
    return driver.Kernel(process or driver.Driver(), device, driver.Attributes(static, registers, threads))


def check(kernel, grid=(1, 1, 1), block=(128, 1, 1), shared=0, parameters=8, device=0):
    kernel.check_launch(Launch("", (), "k", grid, block, shared, (), ()), fake_cupy.Device(device), parameters)


def refused(name="CUDA_ERROR_INVALID_VALUE", reason=""):
    return pytest.raises(driver.DriverError, match=rf"^{name}: .*{reason}")


@pytest.mark.parametrize(
    "static, unasked", [(0, 48 * KB), (256, 48 * KB - 256), (2 * KB, 46 * KB), (48 * KB, 0)], ids=str
)
def test_shared_memory_beyond_48_kb_is_asked_for(static, unasked):
    check(kernel(static), shared=unasked)
    with refused(reason=f"{unasked + 16} bytes of dynamic shared memory in addition to {static} static"):
        check(kernel(static), shared=unasked + 16)
    for size in (unasked + 16, 100 * KB, 227 * KB - static):
        asking = kernel(static)
        asking.max_dynamic_shared_size_bytes = size
        check(asking, shared=size)
        with refused(reason="dynamic shared memory"):
            check(asking, shared=size + 16)


def test_a_limit_that_nobody_has_set_is_not_one_that_was_asked_for():
    """A limit that nobody has set must differ from a request for the same 48 KB."""
    one = kernel(256)
    assert one.max_dynamic_shared_size_bytes == 48 * KB
    with refused(reason="dynamic shared memory"):
        check(one, shared=48 * KB)
    one.max_dynamic_shared_size_bytes = one.max_dynamic_shared_size_bytes
    check(one, shared=48 * KB)


@pytest.mark.parametrize("arch", ATTRIBUTES)
def test_more_shared_memory_than_there_is(arch):
    most = ATTRIBUTES[arch]["MaxSharedMemoryPerBlockOptin"]
    one = kernel(256, arch=arch)
    one.max_dynamic_shared_size_bytes = most - 256
    with refused(reason=f"a block has at most {most}"):
        one.max_dynamic_shared_size_bytes = most - 255


@pytest.mark.parametrize(
    "right, wrong, name",
    [
        ({"grid": (2**31 - 1, 65535, 65535)}, {"grid": (1, 65536, 1)}, "INVALID_VALUE"),
        ({"grid": (1, 1, 65535)}, {"grid": (1, 1, 65536)}, "INVALID_VALUE"),
        ({"block": (1024, 1, 1)}, {"block": (1025, 1, 1)}, "INVALID_VALUE"),
        ({"block": (1, 1, 64)}, {"block": (1, 1, 65)}, "INVALID_VALUE"),
        ({"block": (32, 32, 1)}, {"block": (32, 33, 1)}, "INVALID_VALUE"),
        ({}, {"grid": (0, 1, 1)}, "INVALID_VALUE"),
        ({"parameters": 4096}, {"parameters": 4104}, "INVALID_VALUE"),
        ({}, {"device": 1}, "INVALID_HANDLE"),
    ],
    ids=str,
)
def test_limits_of_a_launch(right, wrong, name):
    check(kernel(), **right)
    with refused(f"CUDA_ERROR_{name}"):
        check(kernel(), **wrong)


def test_threads_and_registers():
    check(kernel(threads=128))
    with refused(reason="for 128 threads, not 160"):
        check(kernel(threads=128), block=(32, 5, 1))
    check(kernel(registers=128), block=(512, 1, 1))
    with refused("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "registers in a block"):
        check(kernel(registers=129), block=(512, 1, 1))  # a warp takes 136
    for threads in (32, 96, 128, 256, 512, 1024):
        check(kernel(registers=driver.most_registers(threads), threads=threads), block=(threads, 1, 1))


def test_a_wrong_kernel_ends_everything():
    process = driver.Driver()
    one, stream = kernel(process=process), fake_cupy.Stream()
    with refused("CUDA_ERROR_ILLEGAL_ADDRESS"):
        process.launch(stream, partial(process.lose, "CUDA_ERROR_ILLEGAL_ADDRESS", "at 0"))
    for call in (
        partial(check, one),
        partial(getattr, one, "shared_size_bytes"),
        partial(setattr, one, "max_dynamic_shared_size_bytes", 1),
        partial(process.allocate, 8, 0, stream),
        partial(process.launch, stream, lambda: None),
        partial(process.is_capturing, stream),
    ):
        with refused("CUDA_ERROR_ILLEGAL_ADDRESS"):
            call()
    check(kernel())  # another process


@pytest.fixture
def cupy(monkeypatch):
    fake_cupy.install(monkeypatch)
    return sys.modules["cupy"]


def test_memory_is_used_again_on_its_stream_alone(cupy):
    one, other = cupy.cuda.Stream(), cupy.cuda.Stream()
    with one:
        first, kept = cupy.cuda.alloc(1000), cupy.cuda.alloc(1000)
    freed = first.ptr
    del first
    with other:
        assert cupy.cuda.alloc(1000).ptr != freed
    with cupy.cuda.Device(1):
        assert cupy.cuda.alloc(1000).ptr != freed
    with one:
        larger = cupy.cuda.alloc(2000)
        assert cupy.cuda.alloc(500).ptr == freed
        assert len({freed, kept.ptr, larger.ptr}) == 3


def test_new_memory_is_refused_while_a_stream_is_captured_globally(cupy):
    runtime = cupy.cuda.runtime
    with cupy.cuda.Stream() as stream:
        cupy.cuda.alloc(1000)
        stream.begin_capture(runtime.streamCaptureModeGlobal)
        memory = cupy.cuda.alloc(1000)
        stream.end_capture()
        stream.begin_capture(runtime.streamCaptureModeGlobal)
        with refused("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "new memory"):
            cupy.cuda.alloc(1000)
        with refused("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
            stream.end_capture()
        stream.begin_capture()  # relaxed, as CuPy's are
        assert cupy.cuda.alloc(1000).ptr != memory.ptr
        stream.end_capture()


# ---- calls ----

SAME = PROBLEMS["2d_same"]


def call_and_outs():
    """A call for both gradients, the arrays that it writes to, and the expected results."""
    tensors, expected = integer_tensors(SAME, "float32")
    x, w, dy = map(fake_cupy.array, tensors)
    dx, dw = (fake_cupy.empty(array.shape, array.dtype) for array in (x, w))
    return partial(cg.conv_backward, dy, x, w, **SAME.keywords, out=(dx, dw)), (dx, dw), expected


@pytest.fixture
def on_tensor_cores(monkeypatch):
    """Use tensor cores for everything that they can compute."""
    monkeypatch.setattr(mma, "suits", mma.can)


@pytest.mark.simulator
@pytest.mark.parametrize("mode", (driver.GLOBAL, driver.RELAXED), ids=("global", "relaxed"))
def test_a_graph_of_a_call(cupy, on_tensor_cores, mode):
    """A graph that is made after a first call on the stream must keep its own workspaces, whatever comes in between."""
    with cupy.cuda.Stream() as stream:
        call, outs, expected = call_and_outs()
        call()
        stream.begin_capture(mode)
        launched = len(fake_cupy.launches)
        call()
        graph = stream.end_capture()
        assert "wgrad" in fake_cupy.launches[launched:] and "pack" in fake_cupy.launches[launched:]
        for _ in range(2):
            others = [cupy.cuda.alloc(512 << i) for i in range(12)]
            for out in outs:
                out.host[...] = np.nan
            graph.launch()
            np.testing.assert_array_equal(outs[0].get(), expected["dgrad"])
            np.testing.assert_array_equal(outs[1].get(), expected["wgrad"])
            assert all((memory.mem.block == POISON["ascending"]).all() for memory in others)


def changed_setting():
    cg.set_default_algorithm("direct")
    cg.set_default_algorithm("auto")


def evicted():
    """Other calls, until the known calls are dropped."""
    calls._KNOWN.most = calls._KNOWN.bytes
    x, w = (fake_cupy.array(np.ones((1, 1, size), np.float32)) for size in (9, 3))
    for padding in range(1, 12):
        cg.conv(x, w, padding=padding)


@pytest.mark.simulator
@pytest.mark.parametrize("forgotten", (changed_setting, evicted))
def test_a_graph_outlives_the_prepared_call(cupy, forgotten):
    """A graph must write to no other array after its call was forgotten: its workspaces must stay allocated."""
    problem = PROBLEMS["2d_depthwise_many"]
    tensors, expected = integer_tensors(problem, "float32")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x, w, dy = map(cupy.array, tensors)
        dw = cupy.empty(w.shape, w.dtype)
        call = partial(cg.conv_backward_filter, x, dy, w.shape, **problem.keywords, out=dw)
        call()
        stream.begin_capture()
        call()
        graph = stream.end_capture()
        (size,) = (known.work.size for known in calls._KNOWN.entries.values())
        forgotten()
        gc.collect()
        others = [cupy.empty((count,), np.uint8) for count in (size, size // 2, 1 << 16)]
        for other in others:
            other.host[...] = 170
        graph.launch()
    assert [int((other.host != 170).sum()) for other in others] == [0, 0, 0]
    np.testing.assert_array_equal(dw.get(), expected["wgrad"])


@pytest.mark.simulator
def test_a_graph_without_a_first_call_on_its_stream(cupy, on_tensor_cores):
    """The pool has no memory for the graph. CuPy's captures must allow it to get some; other libraries' do not."""
    call, outs, expected = call_and_outs()
    call()
    with cupy.cuda.Stream() as stream:
        stream.begin_capture(cupy.cuda.runtime.streamCaptureModeGlobal)
        with refused("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "new memory"):
            call()
        with refused("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
            stream.end_capture()
        stream.begin_capture()
        call()
        stream.end_capture().launch()
    np.testing.assert_array_equal(outs[0].get(), expected["dgrad"])


@pytest.mark.simulator
def test_a_call_while_another_stream_is_captured(cupy, on_tensor_cores):
    """The call must not ask whether the legacy stream is captured, which is forbidden then. It never is captured."""
    call, outs, expected = call_and_outs()
    captured = cupy.cuda.Stream(non_blocking=True)
    captured.begin_capture()
    call()
    np.testing.assert_array_equal(outs[0].get(), expected["dgrad"])
    blocking = cupy.cuda.Stream()
    blocking.begin_capture()
    with refused("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"):
        cupy.cuda.get_current_stream().is_capturing()
    assert not work._is_captured(cupy.cuda.get_current_stream())
    with refused("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"):
        call()


@pytest.mark.simulator
def test_an_error_of_a_kernel_is_seen_by_every_later_call(cupy, monkeypatch):
    """Every later call must see the error, until the process ends. One thread does not reach the kernel's barrier."""
    call, _, _ = call_and_outs()
    call()
    barrier, wrong = "__syncthreads();", "if (threadIdx.x == 0) return; __syncthreads();"
    monkeypatch.setattr(work, "text", lambda source, macros: text(source, macros).replace(barrier, wrong, 1))
    x, dy = (cupy.array(np.ones(shape, np.int32)) for shape in ((4, 40, 9, 9), (4, 40, 7, 7)))
    for later in (
        lambda: cg.conv_backward_filter(x, dy, (40, 40, 3, 3)),
        call,
        lambda: cupy.zeros(3),
        lambda: cupy.cuda.alloc(8),
    ):
        with refused("CUDA_ERROR_LAUNCH_FAILED", "some threads wait for ever"):
            later()


@pytest.mark.simulator
def test_a_kernel_of_the_stand_in_has_the_attributes_of_its_text(cupy):
    tile = tiles.Tile(64, 64, 3)
    kind = tiles.Kind("bf16", 2, 1, 4)
    macros = mma.macros_of(kind, tile, tiles.stages(kind, tile, DEVICES[90], True))
    function = cupy.RawModule(code=text("mma_wgrad.cu", macros)).get_function("wgrad")
    assert (function.shared_size_bytes, function.max_threads_per_block, function.num_regs) == (2048, 128, 255)


@pytest.mark.simulator
def test_memory_of_another_device(cupy):
    """A kernel that reads memory of another device must fail, because devices do not see each other's memory."""
    code = text("reduce.cu", (("ACROSS", "0"), ("STORAGE", "float")))
    function = cupy.RawModule(code=code).get_function("reduce")
    with cupy.cuda.Device(1):
        there = cupy.empty((8,), np.float32)
    with refused("CUDA_ERROR_ILLEGAL_ADDRESS", "memory of device 1"):
        function((1, 1, 1), (256, 1, 1), (there, there, np.zeros(1, "V112")))
    with refused("CUDA_ERROR_ILLEGAL_ADDRESS"):
        there.get()
