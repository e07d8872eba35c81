"""Calls and CuPy on a real GPU: streams, graphs, memory, devices, other libraries."""

from importlib.util import find_spec

import numpy as np
import pytest
from on_device import missing, require_gpu, to_device, to_host
from operations import DTYPES, OPERATIONS, bits, integer_tensors, real_tensors
from problems import PROBLEMS

import convgrad_cy as cg

require_gpu()
if missing() is None:
    import cupy

SAME = PROBLEMS["2d_same"]
NAMES = ("1d_groups", "2d_stride2_dilation3", "2d_depthwise_many", "2d_channels65", "3d_mixed_stride")
BUSY = """
extern "C" __global__ void busy(long long cycles)
{
    const long long begin = clock64();
    while (clock64() - begin < cycles)
        ;
}
"""


def on_gpu(problem, dtype="float32"):
    tensors, expected = integer_tensors(problem, dtype)
    return [to_device(np.ascontiguousarray(array)) for array in tensors], expected


@pytest.fixture
def stream():
    with cupy.cuda.Stream(non_blocking=True) as made:
        yield made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_both_gradients(name, dtype):
    problem = PROBLEMS[name]
    (x, w, dy), expected = on_gpu(problem, dtype)
    dx, dw = cg.conv_backward(dy, x, w, **problem.keywords)
    assert bits(to_host(dx)) == bits(to_host(cg.conv_backward_data(dy, w, x.shape, **problem.keywords)))
    assert bits(to_host(dw)) == bits(to_host(cg.conv_backward_filter(x, dy, w.shape, **problem.keywords)))
    np.testing.assert_array_equal(to_host(dx).astype(np.float64), expected["dgrad"])
    np.testing.assert_array_equal(to_host(dw).astype(np.float64), expected["wgrad"])


def test_on_the_current_stream_and_without_waiting(stream):
    """A call must return while the stream is still busy with earlier work."""
    (x, w, dy), expected = on_gpu(SAME)
    warm = cg.conv(x, w, **SAME.keywords)  # compiles
    cg.conv(x, w, **SAME.keywords, out=cupy.empty_like(warm))
    cg.conv_backward(dy, x, w, **SAME.keywords)
    busy = cupy.RawModule(code=BUSY).get_function("busy")
    stream.synchronize()
    busy((1,), (1,), (4 * 10**9,))  # some two seconds
    source = x.copy()
    y = cg.conv(source, w, **SAME.keywords)
    both = cg.conv_backward(dy, source, w, **SAME.keywords)
    out = cg.conv(source, w, **SAME.keywords, out=cupy.empty_like(y))
    source.fill(7)  # after the calls, in the order of the stream
    assert not stream.done, "a call has waited for the GPU"
    stream.synchronize()
    for result, kernel in zip((y, out, *both), ("fprop", "fprop", "dgrad", "wgrad"), strict=True):
        np.testing.assert_array_equal(to_host(result), expected[kernel])


@pytest.mark.parametrize("name", NAMES)
def test_in_a_graph(stream, name):
    """A call that is captured once must be right when it is launched on other data."""
    problem = PROBLEMS[name]
    (x, w, dy), _ = on_gpu(problem)
    y, dx, dw = cupy.empty_like(dy), cupy.empty_like(x), cupy.empty_like(w)

    def calls():
        cg.conv(x, w, **problem.keywords, out=y)
        cg.conv_backward(dy, x, w, **problem.keywords, out=(dx, dw))

    calls()  # compiles
    stream.synchronize()
    stream.begin_capture()
    calls()
    graph = stream.end_capture()
    cupy.cuda.get_current_stream().synchronize()
    others = [cupy.empty(1 << 20, np.uint8) for _ in range(20)]  # would get workspaces that were not kept
    for seed in range(3):
        tensors = real_tensors(problem, "float32", seed)
        for array, values in zip((x, w, dy), tensors, strict=True):
            array.set(np.ascontiguousarray(values))
        for array in (y, dx, dw):
            array.fill(np.nan)
        graph.launch(stream)
        for other in others:
            other.fill(255)
        stream.synchronize()
        results = [to_host(array) for array in (y, dx, dw)]
        calls()
        for result, array in zip(results, (y, dx, dw), strict=True):
            assert np.isfinite(result).all()
            assert bits(result) == bits(to_host(array))


def test_memory_goes_back_to_the_pool():
    (x, w, dy), _ = on_gpu(PROBLEMS["2d_channels65"])
    keywords = PROBLEMS["2d_channels65"].keywords
    cg.conv_backward(dy, x, w, **keywords)
    pool = cupy.get_default_memory_pool()
    used = pool.used_bytes()
    for _ in range(5):
        cg.conv_backward(dy, x, w, **keywords)
        assert pool.used_bytes() == used


def test_two_streams_at_once():
    problem = PROBLEMS["2d_channels65"]
    (x, w, dy), expected = on_gpu(problem)
    cupy.cuda.Device().synchronize()
    results = []
    for _ in range(4):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            results.append((stream, *cg.conv_backward(dy, x, w, **problem.keywords)))
    for stream, dx, dw in results:
        stream.synchronize()
        np.testing.assert_array_equal(to_host(dx), expected["dgrad"])
        np.testing.assert_array_equal(to_host(dw), expected["wgrad"])


def test_another_device():
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU")
    (x, *_), expected = on_gpu(SAME)
    with cupy.cuda.Device(1):
        (x_there, w_there, _), _ = on_gpu(SAME)
    y = cg.conv(x_there, w_there, **SAME.keywords)
    assert y.device.id == 1
    with cupy.cuda.Device(1):
        np.testing.assert_array_equal(to_host(y), expected["fprop"])
    with pytest.raises(TypeError, match=r"^w must be on the device of x, cuda:0, not on cuda:1$"):
        cg.conv(x, w_there, **SAME.keywords)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_tensors_of_torch():
    """Tensors of PyTorch, also channels_last ones, must come through DLPack without a copy."""
    import torch

    problem = PROBLEMS["2d_channels65"]
    tensors, expected = integer_tensors(problem, "float32")
    x, w = (torch.from_numpy(np.ascontiguousarray(a)).cuda() for a in (tensors.x, tensors.w))
    for memory_format in (torch.contiguous_format, torch.channels_last):
        source = x.to(memory_format=memory_format)
        tensor = cg.conv(source, w, **problem.keywords)
        array = torch.from_dlpack(cg.conv(cupy.from_dlpack(source), cupy.from_dlpack(w), **problem.keywords))
        for y in (tensor, array):
            assert isinstance(y, torch.Tensor) and y.is_cuda
            np.testing.assert_array_equal(y.cpu().numpy(), expected["fprop"])


def test_shims():
    from convgrad_cy.shims.mindspore import ops
    from convgrad_cy.shims.tensorflow import raw_ops

    dout, weight = np.ones((1, 1, 1, 2), np.float32), np.array([[[[1, 2, 3]]]], np.float32)
    operation = ops.Conv2DBackpropInput(out_channel=1, kernel_size=(1, 3), stride=2)
    result = operation(to_device(dout), to_device(weight), (1, 1, 1, 6))
    np.testing.assert_array_equal(to_host(result), operation(dout, weight, (1, 1, 1, 6)))
    arguments = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    x, w = np.ones((2, 5, 5, 3), np.float32), np.ones((3, 3, 3, 4), np.float32)
    result = raw_ops.Conv2D(input=to_device(x), filter=to_device(w), **arguments)
    np.testing.assert_array_equal(to_host(result), raw_ops.Conv2D(input=x, filter=w, **arguments))


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
def test_empty(operation):
    problem = PROBLEMS["2d_same"]
    tensors, _ = integer_tensors(problem, "float32")
    empty = [array[:0] if name != "w" else array for name, array in zip("xwy", tensors, strict=True)]
    arrays = [to_device(np.ascontiguousarray(dict(zip("xwy", empty, strict=True))[name])) for name in operation.reads]
    shape = (problem.w_shape if operation.makes == "w" else (0, *getattr(problem, f"{operation.makes}_shape")[1:]),)
    own = {"conv_transpose": {"output_shape": shape[0]}}.get(operation.name, {})
    asked = () if operation.name in ("conv", "conv_transpose", "conv_transpose_backward_data") else shape
    result = to_host(getattr(cg, operation.name)(*arrays, *asked, **problem.keywords, **own))
    np.testing.assert_array_equal(result, np.zeros(shape[0], np.float32))
