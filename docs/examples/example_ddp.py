"""
PyTorch's DistributedDataParallel in two processes
==================================================

Train one network in several processes with PyTorch's DistributedDataParallel, on the CPU kernels of convgrad_cy.

    torchrun --nproc_per_node=2 docs/examples/example_ddp.py

Each process has a copy of the network and reads a part of each batch of handwritten digits. DDP adds the gradients of
all processes during the backward pass. convgrad_cy is below autograd, so DDP needs no change: each process calls
``convgrad_cy.torch.enable()``, and the last line shows that it computed all convolutions.
"""

import argparse
import os
import sys
from hashlib import sha256

try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    import convgrad_cy.torch
    from convgrad_cy.cli.demo import digits
except ImportError as error:
    sys.exit(f"{error}\nThis example needs PyTorch 2.9 or newer: pip install 'PATH_OF_THE_CLONE[torch]'")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3, help="passes over the digits (default: 3)")
    parser.add_argument("--batch", type=int, default=32, help="digits in a step of all processes (default: 32)")
    parser.add_argument("--width", type=int, default=32, help="channels of the first layer (default: 32)")
    return parser.parse_args()


def network(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * width * 4 * 4, 10),
    )


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def main():
    options = arguments()
    if "RANK" not in os.environ:
        sys.exit("start it with torchrun --nproc_per_node=2 docs/examples/example_ddp.py")
    dist.init_process_group("gloo")
    rank, processes = dist.get_rank(), dist.get_world_size()
    # torchrun sets OMP_NUM_THREADS=1. The processes of this machine share its cores.
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // int(os.environ["LOCAL_WORLD_SIZE"])))
    convgrad_cy.torch.enable()

    train_set, test_set = (TensorDataset(*map(torch.from_numpy, part)) for part in digits.load())
    sampler = DistributedSampler(train_set, seed=0)
    batches = DataLoader(train_set, options.batch // processes, sampler=sampler)
    torch.manual_seed(0)
    model = DistributedDataParallel(network(options.width))
    optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in batches:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        if rank == 0:
            right = accuracy(model.module, *test_set.tensors)
            print(f"epoch {epoch + 1}/{options.epochs}: loss {loss.item():.3f}, test accuracy {right:.2%}", flush=True)

    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    mine = sha256(weights.numpy().tobytes()).hexdigest()[:8], convgrad_cy.torch.status()
    every = [None] * processes
    dist.all_gather_object(every, (mine[0], sum(mine[1].computed.values()), sum(mine[1].passed_on.values())))
    if rank == 0:
        hashes, computed, passed_on = zip(*every, strict=True)
        print(f"{processes} processes, weights {' '.join(hashes)}: {'equal' if len({*hashes}) == 1 else 'DIFFERENT'}")
        print(f"convgrad_cy computed {sum(computed)} calls and passed {sum(passed_on)} on to PyTorch's kernels.")
    dist.barrier()  # so that no process ends while another one still talks to it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
