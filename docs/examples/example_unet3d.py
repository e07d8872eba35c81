"""
Segment a volume with a 3-D U-Net
=================================

Medical volumes are too large for a network, so nnU-Net moves a window over them: neighbouring windows overlap by half,
and the scores of a window count most in its middle, by a Gaussian. On a CPU nearly all of the time is 3-D convolutions.
Here the same inference runs twice: with PyTorch's own kernels, and after ``convgrad_cy.torch.enable()``.

The volumes are noisy tubes, which are drawn. The network is trained on some of them first.

Run it with ``python docs/examples/example_unet3d.py [PICTURE.png]``. It needs more than NumPy: PyTorch 2.9 or newer,
matplotlib and tqdm.
"""

import argparse
from contextlib import nullcontext
from itertools import product
from time import perf_counter

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy, interpolate
from tqdm import tqdm, trange

import convgrad_cy.torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("picture", nargs="?", help="file for the picture; without it a window opens")
parser.add_argument("--quick", action="store_true", help="a small volume and few steps of training")
options = parser.parse_args()
torch.manual_seed(0)
WIDTH, WINDOW, SIZE, STEPS = (8, 16, 32, 4) if options.quick else (16, 48, 120, 60)

# %%
# The network
# -----------
#
# Each level has two convolutions with instance norm. A strided convolution leads down, a transposed one leads up.


def block(inputs, outputs, stride=1):
    parts = []
    for c, s in ((inputs, stride), (outputs, 1)):
        parts += [nn.Conv3d(c, outputs, 3, s, 1), nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01)]
    return nn.Sequential(*parts)


class UNet(nn.Module):
    def __init__(self, width, classes=2, levels=3):
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.down = nn.ModuleList(
            block(1 if level == 0 else widths[level - 1], widths[level], 2 if level else 1) for level in range(levels)
        )
        self.up = nn.ModuleList(nn.ConvTranspose3d(2 * w, w, 2, 2) for w in widths[:-1])
        self.merge = nn.ModuleList(block(2 * w, w) for w in widths[:-1])
        self.scores = nn.Conv3d(width, classes, 1)

    def forward(self, x):
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
        kept.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge), strict=True):
            x = merge(torch.cat([up(x), kept.pop()], dim=1))
        return self.scores(x)


# %%
# Volumes
# -------
#
# Tubes are the places where a smooth random field has the value zero in two components.


def volume(size):
    """(noisy volume, true classes), of one item."""
    fields = interpolate(torch.randn(1, 2, *(max(3, size // 12),) * 3), size=(size,) * 3, mode="trilinear")
    tubes = (fields.square().sum(dim=1) < 0.06).long()
    return tubes[:, None] + 0.6 * torch.randn(1, 1, size, size, size), tubes


# %%
# Sliding windows
# ---------------


def gaussian(size):
    """The weight of each voxel of a window: 1 in the middle. The deviation is an eighth of the size, as in nnU-Net."""
    line = torch.exp(-0.5 * ((torch.arange(size) - (size - 1) / 2) / (size / 8)) ** 2)
    return (line[:, None, None] * line[:, None] * line).clamp(min=1e-4)


@torch.inference_mode()
def segment(network, image, title):
    """The scores of each class at each voxel."""
    begins = torch.linspace(0, SIZE - WINDOW, 1 + -(-(SIZE - WINDOW) // (WINDOW // 2))).round().int().tolist()
    weight, total, scores = gaussian(WINDOW), torch.zeros(SIZE, SIZE, SIZE), torch.zeros(2, SIZE, SIZE, SIZE)
    for corner in tqdm(list(product(begins, repeat=3)), desc=f"{title:<12}", unit=" windows"):
        part = tuple(slice(begin, begin + WINDOW) for begin in corner)
        scores[(slice(None), *part)] += weight * network(image[(..., *part)])[0]
        total[part] += weight
    return scores / total


# %%
# Training, and inference twice
# -----------------------------

network = UNet(WIDTH)
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
with convgrad_cy.torch.enabled():
    for _ in trange(STEPS, desc="training", unit=" steps"):
        image, classes = volume(32)
        loss = cross_entropy(network(image), classes, weight=torch.tensor([1.0, 3.0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

image, classes = volume(SIZE)
seconds, scores = {}, {}
for title, kernels in {"PyTorch": nullcontext, "convgrad_cy": convgrad_cy.torch.enabled}.items():
    with kernels(), torch.inference_mode():
        network(image[..., :WINDOW, :WINDOW, :WINDOW])  # the first call of everything takes longer
        start = perf_counter()
        scores[title] = segment(network, image, title)
        seconds[title] = perf_counter() - start
found = {title: score.argmax(dim=0) for title, score in scores.items()}
truth = classes[0] == 1
dice = {title: 2 * (each * truth).sum() / (each.sum() + truth.sum()) for title, each in found.items()}
for title in seconds:
    print(f"{title:<12} {seconds[title]:6.2f} s, Dice {dice[title]:.3f}")
difference = (scores["PyTorch"] - scores["convgrad_cy"]).abs().max() / scores["PyTorch"].abs().max()
changed = (found["PyTorch"] != found["convgrad_cy"]).sum()
print(f"largest difference of a score: {difference:.0e} of the largest one; voxels of another class: {changed}")

# %%
# Picture
# -------

figure, axes = plt.subplots(1, 4, figsize=(14, 3.7), layout="constrained")
middle = SIZE // 2
shown = {"a slice of the volume": image[0, 0, middle], "true tubes": truth[middle]}
shown |= {f"found, Dice {dice['convgrad_cy']:.2f}": found["convgrad_cy"][middle]}
for place, (title, picture) in zip(axes, shown.items(), strict=False):
    place.imshow(picture, cmap="gray")
    place.set(title=title, xticks=[], yticks=[])
axes[3].bar_label(axes[3].bar(list(seconds), list(seconds.values()), color=["gray", "C0"]), fmt="%.1f s")
axes[3].set(title=f"Inference, {torch.get_num_threads()} threads", ylabel="seconds")
axes[3].margins(y=0.15)
if options.picture:
    figure.savefig(options.picture, dpi=110)
else:
    plt.show()
