"""U-Net in two dimensions (Ronneberger et al. 2015) and three (Çiçek et al. 2016), padded and with batch norm.

The paper of the second has batch norm; for the first it is usual today. Padding makes the result as large as the image.
"""

from itertools import pairwise

import torch
from torch import nn

from .layers import he, normalised

CONVOLUTION = {2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
POOL = {2: nn.MaxPool2d, 3: nn.MaxPool3d}


class UNet(nn.Module):
    """``blocks`` has the channels of the two layers of each level.

    ``halves``: the way up halves the channels at once.
    """

    def __init__(self, inputs, classes, blocks, axes, halves, bias):
        super().__init__()

        def block(*channels):
            layers = [CONVOLUTION[axes](*pair, 3, padding=1, bias=bias) for pair in pairwise(channels)]
            return nn.Sequential(*(normalised(layer, nn.ReLU(inplace=True)) for layer in layers))

        self.down, self.up, self.joined = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        channels = inputs
        for first, second in blocks:
            self.down.append(block(channels, first, second))
            channels = second
        for _, skipped in reversed(blocks[:-1]):
            raised = skipped if halves else channels
            self.up.append(TRANSPOSED[axes](channels, raised, 2, 2))
            self.joined.append(block(raised + skipped, skipped, skipped))
            channels = skipped
        self.pool = POOL[axes](2)
        self.classes = CONVOLUTION[axes](channels, classes, 1)
        he(self)

    def forward(self, x):
        skipped = []
        for level, block in enumerate(self.down):
            x = block(self.pool(x) if level else x)
            skipped.append(x)
        for up, joined, other in zip(self.up, self.joined, reversed(skipped[:-1]), strict=True):
            x = joined(torch.cat([other, up(x)], 1))
        return self.classes(x)


def unet2d(model):
    widths = [model.width << level for level in range(5)]
    return UNet(model.inputs[0], model.classes, [(width, width) for width in widths], 2, halves=True, bias=False)


def unet3d(model):
    widths = [model.width << level for level in range(4)]
    return UNet(model.inputs[0], model.classes, [(width // 2, width) for width in widths], 3, halves=False, bias=True)
