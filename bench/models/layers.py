"""The common parts of several networks: a normalised layer, residual branches, and He's initial weights."""

from torch import nn

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
#: The first weight of the last norm of a residual branch. With 1, each block would double its input, and gradients
#: would grow so much on their way to the first layer that a rounding error would decide the loss after the next step.
#: With 0, a common choice, the loss would not depend on the branch.
BRANCH = 0.25
BATCH_NORMS = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


def normalised(convolution, activation=None):
    """A convolution, batch norm, and an activation."""
    axes = convolution.weight.ndim - 2
    norm = BATCH_NORMS[axes](convolution.out_channels)
    return nn.Sequential(convolution, norm, *([activation] if activation else []))


def branch(*layers):
    """Normalised layers. The last one begins weak."""
    nn.init.constant_(layers[-1][1].weight, BRANCH)
    return nn.Sequential(*layers)


def he(network):
    """He et al. 2015. Values keep their size from layer to layer, so the loss depends on all layers from the start."""
    for layer in network.modules():
        if isinstance(layer, (*CONVOLUTIONS, *TRANSPOSED)):
            # PyTorch's own initial weights are a third as large: VGG-16's images would vanish after 13 layers.
            mode = "fan_in" if isinstance(layer, TRANSPOSED) else "fan_out"
            nn.init.kaiming_normal_(layer.weight, mode=mode, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network
