"""
Train with PyTorch
==================

A convolutional network learns handwritten digits twice: with PyTorch's own kernels and with convgrad_cy's. Both begin
with the same weights and see the same batches in the same order. The model is plain PyTorch. The only difference is the
block ``with convgrad_cy.torch.enabled():``.

Run it with ``python docs/examples/train_pytorch.py [--plot PICTURE.png]``. It needs PyTorch 2.9 or newer, tqdm and, for
the picture, matplotlib.
"""

import argparse
import sys
from contextlib import nullcontext
from statistics import median
from time import perf_counter

try:
    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from tqdm import tqdm

    import convgrad_cy.torch
    from convgrad_cy.cli.demo import digits
except ImportError as error:
    sys.exit(f"{error}\nThis example needs PyTorch 2.9 or newer and tqdm: pip install 'PATH_OF_THE_CLONE[examples]'")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", metavar="FILE", help="save a picture of losses and times (needs matplotlib)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the digits (default: 10)")
    parser.add_argument("--batch", type=int, default=32, help="digits in a step (default: 32)")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layer (default: 64)")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order (default: 0)")
    return parser.parse_args()


def network(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * width * 4 * 4, 10),
    )


def train(model, batches, epochs, title, losses, seconds):
    """Trains until the end of an epoch whenever it is asked for the next one.

    The loss and the time of each step are added to lists.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    # The first call of everything takes longer: it is made before the clock starts, and its gradients are not used.
    images, labels = batches.dataset[: batches.batch_size]
    criterion(model(images), labels).backward()
    for epoch in range(1, epochs + 1):
        with tqdm(batches, desc=f"{title:<12} epoch {epoch}/{epochs}", unit=" steps") as bar:
            for images, labels in bar:
                start = perf_counter()
                optimizer.zero_grad()
                loss = criterion(model(images), labels)
                loss.backward()
                optimizer.step()
                seconds.append(perf_counter() - start)
                losses.append(loss.item())
                bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
        yield


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def draw(path, losses, seconds):
    """Save the losses, each the mean of 20 steps, against the steps and against their time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for title, style in zip(losses, ("-", "--"), strict=True):
        count = min(20, len(losses[title]))
        means = np.convolve(losses[title], np.ones(count) / count, "valid")
        left.semilogy(means, style, label=title)
        right.semilogy(median(seconds[title]) * np.arange(len(means)), means, style, label=title)
    left.set(title="The losses are the same", xlabel="step", ylabel="loss, mean of 20 steps")
    right.set(title="The times are not", xlabel="steps × median time of a step (s)")
    left.legend()
    figure.savefig(path, dpi=110)


def main():
    options = arguments()
    train_set, test_set = (TensorDataset(*map(torch.from_numpy, part)) for part in digits.load())
    weights = sum(parameter.numel() for parameter in network(options.width).parameters())
    print(f"{len(train_set)} digits, {weights:,} weights, epochs: {options.epochs}, threads: {torch.get_num_threads()}")

    kernels = {"PyTorch": nullcontext, "convgrad_cy": convgrad_cy.torch.enabled}
    models, losses, seconds, runs = {}, {}, {}, {}
    for title in kernels:
        torch.manual_seed(options.seed)
        models[title], losses[title], seconds[title] = network(options.width), [], []
        order = torch.Generator().manual_seed(options.seed)
        batches = DataLoader(train_set, options.batch, shuffle=True, generator=order)
        runs[title] = train(models[title], batches, options.epochs, title, losses[title], seconds[title])
    # In turn, an epoch each, so that other programs on the machine slow down both.
    for _ in range(options.epochs):
        for title in kernels:
            with kernels[title]():
                next(runs[title])

    print(f"\n{'convolutions by':<18}{'all steps':>10}{'median step':>15}{'test accuracy':>16}")
    for title in kernels:
        with kernels[title]():
            right = accuracy(models[title], *test_set.tensors)
        print(f"{title:<18}{sum(seconds[title]):>8.2f} s{1e3 * median(seconds[title]):>12.2f} ms{right:>16.2%}")
    theirs, ours = map(median, seconds.values())
    print(f"\nThe median step with convgrad_cy was {theirs / ours:.2f} times as fast as with PyTorch's own kernels.")
    status = convgrad_cy.torch.status()
    passed_on = sum(status.passed_on.values())
    print(f"convgrad_cy computed {sum(status.computed.values())} calls and passed {passed_on} on to PyTorch's kernels.")
    if options.plot:
        draw(options.plot, losses, seconds)


if __name__ == "__main__":
    main()
