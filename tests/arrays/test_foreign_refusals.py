"""Arrays of PyTorch and JAX that are refused, with the full message, which tells the remedy."""

import re

import numpy as np
import pytest
from foreign import float64_of_jax

import convgrad_cy as cg

F4 = np.float32
X, W, Y = (1, 2, 5), (3, 2, 2), (1, 3, 4)
DTYPES = "float16, bfloat16, float32, float64, int32"


def check(arrays, keywords, error, message):
    for _ in range(2):
        with pytest.raises(error, match=f"^{re.escape(message)}$") as caught:
            cg.conv(*arrays, **keywords)
        assert caught.type is error


def torch_calls():
    """(arrays, keywords, message) of rejected calls."""
    import torch

    class Subclass(torch.Tensor):
        pass

    x, w = torch.ones(X), torch.ones(W)
    complex_x = torch.ones(X, dtype=torch.complex64)
    layout = "must be a strided tensor, not of the layout"
    kind = f"{__name__}.{Subclass.__name__}"
    plain = "x.as_subclass(torch.Tensor) makes it one where its memory holds its elements"
    yield (x, np.ones(W, F4)), {}, "w must be a torch.Tensor like x, not a numpy.ndarray"
    yield (np.ones(X, F4), w), {}, "w must be a numpy.ndarray like x, not a torch.Tensor"
    yield (x, [1]), {}, "w must be a torch.Tensor, not list"
    yield (x, w), {"out": np.ones(Y, F4)}, "out must be a torch.Tensor like x, not a numpy.ndarray"
    yield (np.ones(X, F4), np.ones(W, F4)), {"out": x}, "out must be a numpy.ndarray like x, not a torch.Tensor"
    yield (x, w.double()), {}, "w must have the dtype of x, float32, not float64"
    yield (x, w.bfloat16()), {}, "w must have the dtype of x, float32, not bfloat16"
    yield (x.bfloat16(), w), {}, "w must have the dtype of x, bfloat16, not float32"
    yield (x, w), {"out": torch.ones(Y).bfloat16()}, "out must have the dtype of x, float32, not bfloat16"
    yield (x.long(), w), {}, f"x must have a dtype among {DTYPES}, not int64"
    yield (complex_x, w), {}, f"x must have a dtype among {DTYPES}, not complex64"
    yield (complex_x.conj(), w), {}, f"x must have a dtype among {DTYPES}, not complex64"
    yield (x.to(torch.float8_e4m3fn), w), {}, f"x must have a dtype among {DTYPES}, not float8_e4m3fn"
    yield (
        (x.clone().requires_grad_(), w),
        {},
        "x must not require grad here: use convgrad_cy.torch, or x.detach()",
    )
    yield (
        (x, torch.nn.Parameter(w.bfloat16())),
        {},
        "w must not require grad here: use convgrad_cy.torch, or w.detach()",
    )
    yield (
        (x, w),
        {"out": torch.ones(Y, requires_grad=True)},
        "out must not require grad here: use convgrad_cy.torch, or out.detach()",
    )
    yield (complex_x.conj().imag, w), {}, "x must not have its negative bit set: use x.resolve_neg()"
    yield (x.to_sparse(), w), {}, f"x {layout} torch.sparse_coo: use x.to_dense()"
    yield (x, w.bfloat16().to_sparse()), {}, f"w {layout} torch.sparse_coo: use w.to_dense()"
    if torch.backends.mkldnn.is_available():
        yield (x.to_mkldnn(), w), {}, f"x {layout} torch._mkldnn: use x.to_dense()"
    yield (
        (torch.ones(X, device="meta"), w),
        {},
        "x must be on a CPU or a CUDA device, not on meta, where it has no elements",
    )
    yield (x, torch.ones(W, device="meta")), {}, "w must be on the device of x, cpu, not on meta"
    yield (x.as_subclass(Subclass), w), {}, f"x must be a plain torch.Tensor, not a {kind}: {plain}"


@pytest.mark.torch
@pytest.mark.parametrize("number", range(23))
def test_rejected_tensors(number):
    rows = list(torch_calls())
    assert len(rows) in (22, 23)
    if number < len(rows):
        arrays, keywords, message = rows[number]
        check(arrays, keywords, TypeError, message)


@pytest.mark.torch
def test_freed_storage():
    """A freed storage, as in sharded training, must be refused before and after an equal call, and not be read."""
    import torch

    x, w, out = torch.ones(X), torch.ones(W), torch.empty(Y)
    for _ in range(2):
        freed = [torch.ones(shape) for shape in (X, W, Y)]
        for tensor in freed:
            tensor.untyped_storage().resize_(0)
        message = "must have memory, not a storage that was freed"
        check((freed[0], w), {"out": out}, TypeError, f"x {message}")
        check((x, freed[1]), {}, TypeError, f"w {message}")
        check((x, w), {"out": freed[2]}, TypeError, f"out {message}")
        assert (cg.conv(x, w, out=out) == 4).all() and (cg.conv(x, w) == 4).all()


@pytest.mark.torch
def test_out_that_requires_grad():
    import torch

    with torch.no_grad():
        message = "out must not require grad: use out.detach()"
        check((torch.ones(X), torch.ones(W)), {"out": torch.ones(Y, requires_grad=True)}, TypeError, message)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning", "ignore:.*quant.*")
def test_nested_and_quantised_tensors():
    import torch

    w = torch.ones(W)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    check((nested, w), {}, TypeError, "x must not be a nested tensor: use torch.nested.to_padded_tensor")
    quantised = torch.quantize_per_tensor(torch.ones(X), 0.5, 0, torch.qint8)
    check((quantised, w), {}, TypeError, "x must not be quantised: use x.dequantize()")


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")  # PyTorch causes it
def test_tensors_within_transforms():
    """Tensors within transforms must be refused: their gradients would be lost, and a vmap's tensors have no memory."""
    import torch

    x, w = torch.ones(X), torch.ones(W)
    with pytest.raises(TypeError, match=r"^x must not require grad here"):
        torch.func.grad(lambda x: cg.conv(x, w).sum())(x)
    with pytest.raises(TypeError, match=r"^x must not have a tangent: use torch.autograd.forward_ad.unpack_dual"):
        torch.func.jvp(lambda x: cg.conv(x, w), (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(w.bfloat16(), w.bfloat16())
        with pytest.raises(TypeError, match=r"^w must not have a tangent"):
            cg.conv(x.bfloat16(), dual)
        assert cg.conv(x, w).shape == Y
    with pytest.raises(
        TypeError, match=r"^x must have memory of its own, as within torch.func's transforms it has not"
    ):
        torch.func.vmap(lambda x: cg.conv(x, w))(x[None])


@pytest.mark.torch
def test_out_of_torch():
    """A refused ``out`` must keep its values, as NumPy's does."""
    import torch

    memory, w = torch.full((22,), 7.0), torch.ones(W)
    x = memory[:10].view(X)
    check((x, w), {"out": memory[9:21].view(Y)}, ValueError, "out must not overlap x in memory")
    check(
        (x, w),
        {"out": memory[:1].expand(Y)},
        ValueError,
        "out must not overlap itself, but has strides (0, 0, 0)",
    )
    check((x, w), {"out": memory[10:20].view(1, 2, 5)}, ValueError, "out must have the shape (1, 3, 4), not (1, 2, 5)")
    assert (memory == 7).all() and memory._version == 0
    out = memory[10:].view(Y)
    assert cg.conv(x, w, out=out) is out and (memory[10:] == 28).all()
    dx = torch.empty(X)
    for given, message in (
        ((dx, x), "out[1] must have the shape (3, 2, 2), not (1, 2, 5)"),
        ((dx, dx), "out[1] must have the shape (3, 2, 2), not (1, 2, 5)"),
        ((x, None), "out[0] must not overlap x in memory"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            cg.conv_backward(out, x, w, out=given)
    with pytest.raises(TypeError, match=r"^out\[0\] must be a torch.Tensor like dy, not a numpy.ndarray$"):
        cg.conv_backward(out, x, w, out=(np.ones(X, F4), None))
    with pytest.raises(TypeError, match=r"^w must be a torch.Tensor like dy, not a numpy.ndarray$"):
        cg.conv_backward(out, x, np.ones(W, F4))
    with pytest.raises(TypeError, match=r"^dy must be a numpy.ndarray, not list: numpy.asarray makes it one$"):
        cg.conv_backward([1], x, w)


@pytest.mark.jax
def test_rejected_arrays_of_jax():
    import jax

    x, w = jax.numpy.ones(X), jax.numpy.ones(W)
    with float64_of_jax():
        wide = jax.numpy.ones(X, np.float64)
    concrete = (
        "under jit, vmap and grad, convgrad_cy.jax.enable() computes JAX's own convolutions with these kernels, "
        "and jax.pure_callback calls a function of concrete arrays"
    )
    check((x, np.ones(W, F4)), {}, TypeError, "w must be a jax.Array like x, not a numpy.ndarray")
    check((np.ones(X, F4), w), {}, TypeError, "w must be a numpy.ndarray like x, not a jax.Array")
    message = "out must not be given for a jax.Array: JAX's arrays are immutable"
    check((x, w), {"out": np.ones(Y, F4)}, TypeError, message)
    check((x, w.astype("bfloat16")), {}, TypeError, "w must have the dtype of x, float32, not bfloat16")
    check((x.astype("int8"), w), {}, TypeError, f"x must have a dtype among {DTYPES}, not int8")
    check((jax.random.key(0), w), {}, TypeError, f"x must have a dtype among {DTYPES}, not key<fry>")
    check((wide, w), {}, TypeError, "x must not be of float64, because JAX has no float64 without jax_enable_x64")
    for function, kind in (
        (jax.jit(lambda x: cg.conv(x, w)), "DynamicJaxprTracer"),
        (jax.vmap(lambda x: cg.conv(x, w)), "BatchTracer"),
        (jax.grad(lambda x: cg.conv(x, w).sum()), r"\w+Tracer"),
    ):
        with pytest.raises(TypeError, match=f"^x must be a concrete array, not a {kind}: {re.escape(concrete)}"):
            function(x)
    with pytest.raises(TypeError, match=r"^w must be a concrete array, not a \w+Tracer"):
        jax.jit(lambda w: cg.conv(x, w))(w)
    with pytest.raises(TypeError, match=r"^out\[1\] must not be given for a jax.Array"):
        cg.conv_backward(jax.numpy.ones(Y), x, w, out=(None, w))
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        cg.conv(x, w)


@pytest.mark.torch
@pytest.mark.jax
def test_a_mix_of_both():
    import jax
    import torch

    x, w = torch.ones(X), jax.numpy.ones(W)
    check((x, w), {}, TypeError, "w must be a torch.Tensor like x, not a jax.Array")
    check((w, x), {}, TypeError, "w must be a jax.Array like x, not a torch.Tensor")
