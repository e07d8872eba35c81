"""Forks, the workers of a DataLoader, and training in several processes, each in an interpreter of its own."""

import os
import socket

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import scripts  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]

START = """
import os
import torch
import convgrad_cy.torch as override

torch.set_num_threads(2)
override.enable()
generator = torch.Generator().manual_seed(0)
# Large enough for two threads in our kernels, small enough for one in PyTorch's own, whose teams survive no fork.
x, w = torch.randn(1, 32, 28, 28, generator=generator), torch.randn(32, 32, 3, 3, generator=generator)

def step():
    one, other = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = torch.conv2d(one, other, padding=1)
    return y.detach(), *torch.autograd.grad(y, (one, other), x)

def same(ours, theirs):
    return all(map(torch.equal, ours, theirs))
"""

FORK = (
    START
    + """
import signal

def fork(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # ends a child that hangs
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def counted():
    before = override.status().computed
    step()
    return all(count == before[name] + ("CUDA" not in name) for name, count in override.status().computed.items())

expected = step()
print(fork(lambda: same(step(), expected)))
print(fork(lambda: fork(lambda: same(step(), expected)) == 0))
print(fork(counted))
print(fork(lambda: override.disable() or not override.is_enabled()))
print(override.is_enabled(), same(step(), expected))
# A child that is the first to compute.
y = torch.conv1d(torch.ones(1, 1, 9), torch.ones(1, 1, 2))
print(fork(lambda: torch.equal(torch.conv1d(torch.ones(1, 1, 9), torch.ones(1, 1, 2)), y)))
"""
)


@pytest.mark.filterwarnings("ignore")
def test_forks(tmp_path):
    """Children and grandchildren of a parent with two threads must get its bits, backward as well."""
    assert scripts.run(tmp_path, FORK) == ["0", "0", "0", "0", "True True", "0"]


WORKERS = (
    START
    + """
from torch.utils.data import DataLoader, Dataset

class Blurred(Dataset):
    '''Pictures that the workers convolve, and differentiate.'''

    def __len__(self):
        return 12

    def __getitem__(self, index):
        picture = torch.full((2, 16, 16), float(index)).requires_grad_()
        before = override.status().computed["_convolution"]
        y = torch.conv2d(picture, torch.ones(2, 1, 3, 3), padding=1, groups=2)
        (dx,) = torch.autograd.grad(y.sum(), picture)
        return y.detach(), dx, override.is_enabled() and override.status().computed["_convolution"] == before + 1

if __name__ == "__main__":
    step()
    network = torch.nn.Sequential(torch.nn.Conv2d(2, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 1, 3))
    sgd = torch.optim.SGD(network.parameters(), 1e-6)
    loader = DataLoader(Blurred(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        for pictures, gradients, ours in loader:
            assert bool(ours.all()) and gradients.amax() == 9
            assert pictures[-1].amax() % 9 == 0
            sgd.zero_grad()
            network(pictures).square().mean().backward()
            sgd.step()
    finite = all(bool(parameter.isfinite().all()) for parameter in network.parameters())
    print(override.status().computed["convolution_backward"], finite)
"""
)


def test_workers_of_a_data_loader(tmp_path):
    """Workers must inherit the enabled kernels. The parent trains meanwhile: 3 steps of two layers, twice, and one."""
    assert scripts.run(tmp_path, WORKERS) == ["13 True"]


PARALLEL = """
import torch
import torch.distributed
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

PROCESSES, STEPS = 2, 3

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 8, 3, padding=1), torch.nn.Tanh(), torch.nn.Conv2d(8, 4, 3, stride=2, groups=2),
        torch.nn.Tanh(), torch.nn.ConvTranspose2d(4, 2, 3, stride=2),
    ).double()

def data():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, 8, 2, 7, 7, generator=generator, dtype=torch.float64)

def train(network, x, target):
    sgd = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(STEPS):
        sgd.zero_grad()
        (network(x) - target).square().mean().backward()
        sgd.step()

def work(rank, port, folder):
    import convgrad_cy.torch as override

    override.enable()
    store = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=PROCESSES)
    x, target = data()
    network = build()
    train(DistributedDataParallel(network), x[rank::PROCESSES], target[rank::PROCESSES])
    torch.save(network.state_dict(), f"{folder}/{rank}.pt")
    computed = override.status().computed
    assert computed == {"_convolution": 3 * STEPS, "convolution_backward": 3 * STEPS}, computed
    torch.distributed.destroy_process_group()

if __name__ == "__main__":
    port, folder = ARGUMENTS
    torch.multiprocessing.spawn(work, (port, folder), PROCESSES)
    network = build()
    train(network, *data())
    first, second = (torch.load(f"{folder}/{rank}.pt") for rank in range(PROCESSES))
    for name, weights in network.state_dict().items():
        assert torch.equal(first[name], second[name])
        off, moved = (first[name] - weights).abs().max(), (weights - build().state_dict()[name]).abs().max()
        print("weights", float(off), float(moved))
"""

#: The weights and the data are near 1, and tanh and the mean of squares do not increase them. A sum of a layer has at
#: most 8 * 49 * 8 * 9 = 28,224 terms, in another order: 28,224 * 2**-53 = 3.2e-12. Through five layers forward and
#: backward and three steps of 0.1, this adds up to at most 30 times as much.
MOST = 30 * 28_224 * 2**-53


def test_data_parallel_training(tmp_path):
    """Two processes that share gradients must end where one with the whole batch does: float64, on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = PARALLEL.replace("ARGUMENTS", f"{port}, {str(tmp_path)!r}")
    lines = scripts.run(tmp_path, source, timeout=240, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    numbers = [line.split()[1:] for line in lines if line.startswith("weights ")]  # older releases print more
    assert len(numbers) == 6
    for off, moved in (map(float, pair) for pair in numbers):
        assert off <= MOST < 1e-3 < moved
