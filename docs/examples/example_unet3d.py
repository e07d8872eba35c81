"""
Segment a volume with a 3-D U-Net
=================================

Medical volumes are too large for a network, so nnU-Net moves a window over them: neighbouring windows overlap by half,
and the scores of a window count most in its middle, by a Gaussian. On a CPU nearly all of the time is 3-D convolutions.
Here each window is computed twice: with PyTorch's own kernels, and with ``convgrad_cy.torch.enabled()``.

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

parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
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


def block(c, outputs, stride=1):
    norms = [(nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01)) for _ in range(2)]
    convolutions = nn.Conv3d(c, outputs, 3, stride, 1), nn.Conv3d(outputs, outputs, 3, 1, 1)
    return nn.Sequential(convolutions[0], *norms[0], convolutions[1], *norms[1])


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down1, self.down2 = block(1, width), block(width, 2 * width, 2)
        self.down3 = block(2 * width, 4 * width, 2)
        self.up2, self.merge2 = nn.ConvTranspose3d(4 * width, 2 * width, 2, 2), block(4 * width, 2 * width)
        self.up1, self.merge1 = nn.ConvTranspose3d(2 * width, width, 2, 2), block(2 * width, width)
        self.scores = nn.Conv3d(width, 2, 1)

    def forward(self, x):
        fine = self.down1(x)
        middle = self.down2(fine)
        coarse = self.down3(middle)
        middle = self.merge2(torch.cat([self.up2(coarse), middle], dim=1))
        return self.scores(self.merge1(torch.cat([self.up1(middle), fine], dim=1)))


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
#
# The kernels compute each window in turn, so that other programs on the machine slow down both.


def gaussian(size):
    """The weight of each voxel of a window: 1 in the middle. The deviation is an eighth of the size, as in nnU-Net."""
    line = torch.exp(-0.5 * ((torch.arange(size) - (size - 1) / 2) / (size / 8)) ** 2)
    return (line[:, None, None] * line[:, None] * line).clamp(min=1e-4)


KERNELS = {"PyTorch": nullcontext, "convgrad_cy": convgrad_cy.torch.enabled}


@torch.inference_mode()
def segment(network, image):
    """The scores of each class at each voxel, and the seconds, by both kernels."""
    weight, total = gaussian(WINDOW), torch.zeros(SIZE, SIZE, SIZE)
    scores = {title: torch.zeros(2, SIZE, SIZE, SIZE) for title in KERNELS}
    seconds = dict.fromkeys(KERNELS, 0.0)
    corners = [(0, 0, 0), *product(range(0, SIZE - WINDOW + 1, WINDOW // 2), repeat=3)]
    for number, corner in enumerate(tqdm(corners, desc="inference", unit=" windows")):
        part = tuple(slice(begin, begin + WINDOW) for begin in corner)
        for title, kernels in KERNELS.items():
            with kernels():
                start = perf_counter()
                found = network(image[(..., *part)])[0]
            if number:  # the first call of everything takes longer: it is not counted
                seconds[title] += perf_counter() - start
                scores[title][(slice(None), *part)] += weight * found
        total[part] += weight * (number > 0)
    return {title: score / total for title, score in scores.items()}, seconds


# %%
# Training and inference
# ----------------------

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
scores, seconds = segment(network, image)
truth = classes[0]
for title, score in scores.items():
    found = score.argmax(dim=0)
    dice = 2 * (found * truth).sum() / (found.sum() + truth.sum())
    print(f"{title:<12} {seconds[title]:6.2f} s, Dice {dice:.3f}")
own, ours = scores.values()
difference, changed = (own - ours).abs().max() / own.abs().max(), (own.argmax(0) != ours.argmax(0)).sum()
print(f"largest difference of a score: {difference:.0e} of the largest one; voxels of another class: {changed}")

figure, axes = plt.subplots(1, 4, figsize=(14, 3.7), layout="constrained")
middle = SIZE // 2
shown = {"a slice of the volume": image[0, 0], "true tubes": truth, f"found, Dice {dice:.2f}": found}
for place, (title, picture) in zip(axes, shown.items(), strict=False):
    place.imshow(picture[middle].numpy(), cmap="gray")
    place.set(title=title, xticks=[], yticks=[])
axes[3].bar_label(axes[3].bar(list(seconds), list(seconds.values()), color=["gray", "C0"]), fmt="%.1f s")
axes[3].set(title=f"Inference, threads: {torch.get_num_threads()}", ylabel="seconds")
axes[3].margins(y=0.15)
figure.savefig(options.picture, dpi=110) if options.picture else plt.show()
