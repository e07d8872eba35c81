"""The functions on arrays of PyTorch and JAX: exact, in the arrays' own memory, and remembered."""

import subprocess
import sys
from contextlib import nullcontext

import foreign
import numpy as np
import pytest
from operations import EXACT, OPERATIONS, Tensors, bits, draw_integers, reference_kernel
from problems import PROBLEMS

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.dtypes import BFLOAT16_BITS

SAME = PROBLEMS["2d_same"]
NAMES = ("1d_groups", "2d_same", "2d_stride2_dilation3", "3d_mixed_stride")


@pytest.fixture(params=foreign.LIBRARIES)
def library(request):
    with foreign.float64_of_jax() if request.param == "jax" else nullcontext():
        yield foreign.made(request.param)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def lent(monkeypatch):
    """The NumPy arrays through which the calls of a test saw other arrays, and the results that the calls made."""
    arrays, results = [], []

    def keep(array, kept):
        kept.append(array)
        return array

    def library_of(name, array):
        row = original(name, array)
        if not hasattr(row, "view"):
            return row
        return row._replace(
            view=lambda *named: keep(row.view(*named), arrays),
            view_out=lambda *named: keep(row.view_out(*named), arrays),
            returned=lambda result, *given: row.returned(keep(result, results), *given),
        )

    original = calls.library_of
    monkeypatch.setattr(calls, "library_of", library_of)
    return arrays, results


def check(library, result, expected, dtype):
    assert library.is_one(result)
    assert library.dtype(result) == dtype
    np.testing.assert_array_equal(library.values(result), expected)


def test_neither_is_imported_for_numpy_arrays():
    code = """
import sys
import numpy as np
import convgrad_cy as cg
x = np.ones((1, 1, 3), np.float32)
cg.conv_backward(cg.conv(x, x), x, x)
print([name for name in ("torch", "jax", "cupy", "ml_dtypes") if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", foreign.DTYPES)
@pytest.mark.parametrize("problem", NAMES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_function(library, lent, operation, problem, dtype):
    """Every function must be exact, without a copy of an argument or a result."""
    problem, operation = PROBLEMS[problem], OPERATIONS[operation]
    tensors = draw_integers(problem, EXACT[dtype])
    given = []

    def array(values):
        given.append(library.array(values, dtype))
        return given[-1]

    for formats in (("NCX", "OIX"), ("NXC", "XIO")):
        result = operation.call(problem, tensors, *formats, layout=array)
        check(library, result, operation.expected(problem, tensors, *formats), dtype)
        assert library.pointer(result) == address(lent[1][-1])
    assert [address(seen) for seen in lent[0]] == [library.pointer(array) for array in given]


@pytest.mark.parametrize("dtype", foreign.DTYPES)
@pytest.mark.parametrize("problem", NAMES)
@pytest.mark.parametrize(
    ("function", "places", "kernels"),
    [("conv_backward", (2, 0, 1), ("dgrad", "wgrad")), ("conv_transpose_backward", (0, 2, 1), ("fprop", "wgrad"))],
)
def test_both_gradients(library, lent, function, places, kernels, problem, dtype):
    problem = PROBLEMS[problem]
    tensors = draw_integers(problem, EXACT[dtype])
    dy, x, w = (library.array(tensors[place], dtype) for place in places)
    for _ in range(2):
        results = getattr(cg, function)(dy, x, w, algorithm="direct", **problem.keywords)
        for result, kernel, made in zip(results, kernels, lent[1][-2:], strict=True):
            check(library, result, reference_kernel(kernel, problem, tensors), dtype)
            assert library.pointer(result) == address(made)
    assert [address(seen) for seen in lent[0][:3]] == [library.pointer(array) for array in (dy, x, w)]


@pytest.mark.parametrize("dtype", foreign.DTYPES)
def test_the_same_bits_as_of_numpy_arrays(library, dtype):
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(shape) * 9 for shape in (SAME.x_shape, SAME.w_shape))
    ours = [library.array(array, dtype) for array in (x, w)]
    if dtype == "bfloat16":
        # bfloat16 is the upper half of a float32.
        theirs = [library.values(array).astype(np.float32).view(np.uint32) >> 16 for array in ours]
        theirs = [array.astype(np.uint16).view(BFLOAT16_BITS) for array in theirs]
    else:
        theirs = [library.values(array).astype(dtype) for array in ours]
    result, expected = cg.conv(*ours, **SAME.keywords), cg.conv(*theirs, **SAME.keywords)
    if dtype == "bfloat16":
        expected = (expected.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert bits(library.values(result)) == bits(expected.astype(np.float64))


def test_a_call_like_an_earlier_one_is_remembered(library, monkeypatch):
    tensors = draw_integers(SAME, EXACT["float32"])
    x, w, dy = (library.array(values) for values in tensors)
    first, pair = cg.conv(x, w, **SAME.keywords), cg.conv_backward(dy, x, w, **SAME.keywords)
    monkeypatch.setattr(calls.functions, "geometry_of", None)
    np.testing.assert_array_equal(library.values(cg.conv(x, w, **SAME.keywords)), library.values(first))
    for again, before in zip(cg.conv_backward(dy, x, w, **SAME.keywords), pair, strict=True):
        np.testing.assert_array_equal(library.values(again), library.values(before))


def test_empty_and_large(library):
    x, w = library.array(np.ones((2, 3, 9))), library.array(np.ones((4, 3, 2)))
    assert cg.conv(x[:0], w).shape == (0, 4, 8)
    dx, dw = cg.conv_backward(cg.conv(x, w)[:0], x[:0], w)
    assert dx.shape == (0, 3, 9) and not library.values(dw).any()
    wide = library.array(np.ones((2, 3, 1 << 15)))
    np.testing.assert_array_equal(library.values(cg.conv(wide, w)), np.full((2, 4, (1 << 15) - 1), 6))


def layouts(torch):
    """Functions from a tensor with four axes to an equal one in another memory layout."""
    yield lambda tensor: tensor.contiguous(memory_format=torch.channels_last)
    yield lambda tensor: tensor.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    yield lambda tensor: torch.stack([tensor, tensor + 1], -1)[..., 0]
    yield lambda tensor: torch.cat([tensor, tensor])[: len(tensor)].detach()
    yield lambda tensor: torch.nn.Parameter(tensor, requires_grad=False)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_layouts_of_torch(torch, lent, operation, number, dtype):
    """Every layout must be exact, also for ``out``, and with strides of any size."""
    layout, operation = list(layouts(torch))[number], OPERATIONS[operation]
    library, tensors, given = foreign.made("torch"), draw_integers(SAME, EXACT[dtype]), []

    def array(values):
        given.append(layout(library.array(values, dtype)))
        return given[-1]

    expected = operation.expected(SAME, tensors)
    for _ in range(2):
        out = layout(library.array(np.full(expected.shape, 77), dtype))
        assert operation.call(SAME, tensors, layout=array, out=out) is out
        given.append(out)
        np.testing.assert_array_equal(library.values(out), expected)
    for seen, tensor in zip(lent[0], given, strict=True):
        assert address(seen) == tensor.data_ptr()
        assert seen.strides == tuple(stride * tensor.itemsize for stride in tensor.stride())


@pytest.mark.torch
@pytest.mark.parametrize("dtype", foreign.DTYPES)
def test_expanded_tensors_are_not_copied(torch, lent, dtype):
    library, tensors = foreign.made("torch"), draw_integers(SAME, EXACT[dtype])
    x = library.array(tensors.x[:, :1], dtype).expand(SAME.x_shape)
    w = library.array(tensors.w, dtype)
    repeated = Tensors(np.broadcast_to(tensors.x[:, :1], SAME.x_shape), tensors.w, tensors.y)
    y = cg.conv(x, w, algorithm="direct", **SAME.keywords)
    np.testing.assert_array_equal(library.values(y), reference_kernel("fprop", SAME, repeated))
    assert lent[0][0].strides[1] == 0 and address(lent[0][0]) == x.data_ptr()


@pytest.mark.torch
def test_out_of_both_gradients_and_versions(torch):
    """PyTorch must learn that ``out`` has changed, but not if the call is refused."""
    library, tensors = foreign.made("torch"), draw_integers(SAME, EXACT["float32"])
    x, w, dy = map(library.array, tensors)
    out = [torch.empty_like(x, memory_format=torch.channels_last), None]
    for version in (1, 2):
        dx, dw = cg.conv_backward(dy, x, w, algorithm="direct", out=out, **SAME.keywords)
        assert dx is out[0] and dx._version == version and dw._version == 0
        np.testing.assert_array_equal(library.values(dx), reference_kernel("dgrad", SAME, tensors))
        np.testing.assert_array_equal(library.values(dw), reference_kernel("wgrad", SAME, tensors))
    with pytest.raises(ValueError, match=r"^out\[0\] must have the shape"):
        cg.conv_backward(dy, x, w, out=[dx[:1], None], **SAME.keywords)
    assert dx._version == 2
    leaf = torch.ones(1, requires_grad=True)
    y = torch.empty(reference_kernel("fprop", SAME, tensors).shape)
    kept = (y * leaf).sum()
    cg.conv(x, w, out=y, **SAME.keywords)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.backward()


@pytest.mark.torch
def test_parameters_where_no_gradient_is_asked_for(torch):
    x, w = torch.ones(1, 2, 5), torch.nn.Parameter(torch.ones(3, 2, 2))
    with torch.no_grad():
        assert (cg.conv(x, w) == 4).all()
        assert (cg.conv(x.bfloat16(), w.bfloat16()) == 4).all()
    with torch.inference_mode():
        out = torch.empty(1, 3, 4)
        assert cg.conv(x, w, out=out) is out and (out == 4).all()
    assert cg.conv(x, w.detach(), out=out) is out and (out == 4).all()


@pytest.mark.torch
def test_bfloat16_without_ml_dtypes():
    code = """
import sys
sys.modules["ml_dtypes"] = None
import torch, convgrad_cy as cg
x, w = torch.ones(1, 2, 5, dtype=torch.bfloat16), torch.full((3, 2, 2), 0.5, dtype=torch.bfloat16)
y = cg.conv(x, w)
assert y.dtype == torch.bfloat16 and (y == 2).all()
dx, dw = cg.conv_backward(y, x, w)
assert dw.dtype == torch.bfloat16 and (dw == 8).all(), dw
try:
    cg.conv(x, w.float())
except TypeError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "w must have the dtype of x, bfloat16, not float32\n"


@pytest.mark.jax
def test_jax_devices_and_callbacks():
    """A result must be on the device of its arguments, and committed to it as they are."""
    code = """
import jax, numpy as np, convgrad_cy as cg
x, w = jax.numpy.ones((1, 2, 5)), jax.numpy.ones((3, 2, 2))
assert not cg.conv(x, w).committed
for device in jax.devices():
    y = cg.conv(jax.device_put(x, device), jax.device_put(w, device))
    assert y.device == device and y.committed and (y == 4).all()
try:
    cg.conv(x, jax.device_put(w, device))
except TypeError as error:
    print(error)
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("a",))
halves = jax.device_put(jax.numpy.ones((2, 2, 5)), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a")))
try:
    cg.conv(halves, w)
except TypeError as error:
    print(error)
shape = jax.ShapeDtypeStruct((1, 3, 4), np.float32)
print(jax.jit(lambda x, w: jax.pure_callback(cg.conv, shape, x, w).sum())(x, w))
"""
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    remedy = "jax.device_put(x, jax.devices('cpu')[0]) copies it to one"
    assert ran.stdout.splitlines() == [
        "w must be on the device of x, cpu:0, not on cpu:1",
        f"x must be on one device, a CPU, not on cpu:0, cpu:1: {remedy}",
        "48.0",
    ]
