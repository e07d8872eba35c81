"""Memory of tensors stays PyTorch's: the caller may resize it after a call, as sharded training does."""

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import scripts  # noqa: E402

import convgrad_cy as cg  # noqa: E402
import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy._aten import Untraced  # noqa: E402
from convgrad_cy.torch import kernels, plans  # noqa: E402

pytestmark = pytest.mark.torch

functional = torch.nn.functional
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def resize_all(tensors):
    """Free the memory of each tensor, and allocate it again."""
    for name, tensor in tensors.items():
        storage = tensor.detach().untyped_storage()
        assert storage.resizable(), name
        size = storage.nbytes()
        storage.resize_(0)
        assert storage.nbytes() == 0
        storage.resize_(size)


#: x, w, stride, padding, and whether some kernel takes arrays, which are made at the addresses.
SHAPES = {
    "small": ((1, 3, 9, 9), (4, 3, 3, 3), 1, 0, False),
    "strided": ((2, 8, 17, 17), (8, 8, 3, 3), 2, 1, False),
    "taps that reach nothing": ((1, 8, 1, 1), (8, 8, 3, 3), 1, 1, True),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES)
def test_storages_of_a_training_step(monkeypatch, shapes, dtype):
    """Both operators must leave storages resizable, when a call is planned and when it is looked up."""
    x_shape, w_shape, stride, padding, takes_arrays = SHAPES[shapes]
    made, original = [], plans.Result

    def result(run, *rest):
        made.append(isinstance(run, Untraced))
        return original(run, *rest)

    monkeypatch.setattr(plans, "Result", result)
    kernels.forget()
    before = override.status()
    with override.enabled():
        for _ in range(2):
            x = torch.randn(x_shape).to(dtype).requires_grad_()
            w = torch.randn(w_shape).to(dtype).requires_grad_()
            b = torch.randn(w_shape[0]).to(dtype).requires_grad_()
            y = functional.conv2d(x, w, b, stride, padding)
            dy = torch.randn_like(y)
            dx, dw, db = torch.autograd.grad(y, (x, w, b), dy)
            resize_all({"x": x, "w": w, "b": b, "y": y, "dy": dy, "dx": dx, "dw": dw, "db": db})
    after = override.status()
    assert after.passed_on == before.passed_on
    assert all(count == before.computed[name] + 2 * ("CUDA" not in name) for name, count in after.computed.items())
    assert len(made) == 3 and any(made) == takes_arrays


@pytest.mark.parametrize("dtype", (*DTYPES, torch.int32))
def test_storages_of_the_functions(dtype):
    """The storages of operands, of ``out``, and of results must stay resizable."""
    for _ in range(2):
        x, w = torch.ones(2, 3, 9, 9, dtype=dtype), torch.ones(4, 3, 3, 3, dtype=dtype)
        y, out = cg.conv(x, w), torch.empty(2, 4, 7, 7, dtype=dtype)
        assert cg.conv(x, w, out=out) is out and (out == 27).all() and (y == 27).all()
        dx, dw = cg.conv_backward(y, x, w)
        up = cg.conv_transpose(y, w)
        empty = cg.conv(x[:0], w)
        assert type(empty) is type(y) is torch.Tensor and empty.dtype is y.dtype is dtype
        assert empty.shape == (0, 4, 7, 7)
        resize_all({"x": x, "w": w, "y": y, "out": out, "dx": dx, "dw": dw, "up": up, "empty": empty})


def test_results_within_transforms_and_fake_tensors():
    """A result must be in NumPy's memory within transforms, where PyTorch gives no memory."""
    x, w = torch.ones(1, 2, 5), torch.ones(3, 2, 2)

    def within(z):
        y = cg.conv(x, w)
        assert y.shape == (1, 3, 4)
        return (y * z).sum()

    assert torch.func.grad(within)(torch.ones(())) == 48
    with torch.device("meta"):
        assert (cg.conv(x, w) == 4).all()
    with torch.inference_mode():
        assert (cg.conv(x, w) == 4).all() and cg.conv(x, w).is_inference()


TRAINING = """
import os
import torch
import torch.distributed
import torch.multiprocessing
from torch.utils.checkpoint import checkpoint

KIND = os.environ["KIND"]
SHARED = KIND in ("FSDP1", "FSDP2", "DDP")
STEPS, PROCESSES = 3, 2

def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Tanh(), torch.nn.Conv2d(8, 4, 3, stride=2),
        torch.nn.Tanh(), torch.nn.ConvTranspose2d(4, 2, 3, stride=2),
    )

def wrapped(layers):
    if KIND == "FSDP1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        return FullyShardedDataParallel(layers, device_id=torch.device("cpu"))
    if KIND == "FSDP2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (PROCESSES,))
        for layer in layers:
            if list(layer.parameters()):
                fully_shard(layer, mesh=mesh)
        fully_shard(layers, mesh=mesh)
        return layers
    if KIND == "DDP":
        return torch.nn.parallel.DistributedDataParallel(layers)
    return layers

def output(layers, x):
    if KIND == "checkpoint":
        return checkpoint(layers, x, use_reentrant=False)
    if KIND == "save_on_cpu":
        with torch.autograd.graph.save_on_cpu():
            return layers(x)
    if KIND == "saved-tensor hooks":
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda kept: kept):
            return layers(x)
    return layers(x)

def losses(rank, enabled):
    import convgrad_cy.torch as override
    (override.enable if enabled else override.disable)()
    before = override.status()
    layers = wrapped(network())
    sgd = torch.optim.SGD(layers.parameters(), 0.1)
    generator = torch.Generator().manual_seed(rank)
    found = []
    for _ in range(STEPS):
        x = torch.randn(2, 3, 9, 9, generator=generator)
        loss = output(layers, x).square().mean()
        loss.backward()
        sgd.step()
        sgd.zero_grad()
        found.append(float(loss))
    after = override.status()
    computed = [after.computed[name] - before.computed[name] for name in sorted(after.computed)]
    return found, computed, after.passed_on

def work(rank, folder):
    torch.set_num_threads(1)
    if SHARED:
        store = f"file://{folder}/store"
        torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=PROCESSES)
    theirs, none, _ = losses(rank, False)
    ours, computed, passed_on = losses(rank, True)
    if rank == 0:
        print(len(theirs), len(ours), max(abs(a - b) for a, b in zip(theirs, ours)), theirs[0] - theirs[-1])
        print(none, computed, passed_on, flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()

if __name__ == "__main__":
    if SHARED:
        torch.multiprocessing.spawn(work, (os.getcwd(),), PROCESSES)
    else:
        work(0, os.getcwd())
"""


@pytest.mark.parametrize("kind", ["FSDP1", "FSDP2", "DDP", "checkpoint", "save_on_cpu", "saved-tensor hooks"])
def test_training_with_and_without(tmp_path, kind):
    """The losses of equally many steps must agree. Three layers must compute here in each, forward and backward."""
    environment = {"KIND": kind, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    numbers, calls = scripts.run(tmp_path, TRAINING, timeout=240, **environment)[-2:]
    theirs, ours, off, fallen = numbers.split()
    assert (theirs, ours) == ("3", "3")
    assert float(off) < 1e-5 < 1e-3 < abs(float(fallen))
    forward = 15 if kind == "checkpoint" else 9  # all layers but the last one are computed again
    assert calls == f"[0, 0] [{forward}, 9] {{}}"
