"""ConvNeXt-T: Liu et al. 2022, without stochastic depth, because both libraries have to see the same network.

The scales of the blocks do not begin at 10⁻⁶: the loss would then not depend on the depthwise layers. The work is
equal.
"""

import torch
from torch import nn
from torch.nn import functional

from .layers import BRANCH

#: Blocks of each stage; each stage has twice the channels of the one before.
STAGES = (3, 3, 9, 3)


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of (batch, channels, height, width)."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.widen = nn.Linear(channels, 4 * channels)
        self.narrow = nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), BRANCH))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrow(functional.gelu(self.widen(y)))
        return x + (self.scale * y).permute(0, 3, 1, 2)


class ConvNeXtTiny(nn.Module):
    def __init__(self, model):
        super().__init__()
        channels = model.width
        layers = [nn.Conv2d(model.inputs[0], channels, 4, 4), ChannelNorm(channels, eps=1e-6)]
        for stage, blocks in enumerate(STAGES):
            if stage:
                layers += [ChannelNorm(channels, eps=1e-6), nn.Conv2d(channels, 2 * channels, 2, 2)]
                channels *= 2
            layers += [Block(channels) for _ in range(blocks)]
        self.features = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.classifier = nn.Linear(channels, model.classes)

    def forward(self, x):
        return self.classifier(self.norm(self.features(x).mean((2, 3))))
