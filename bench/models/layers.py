"""What several networks have: a normalised layer, residual branches, and He's initial weights."""

from torch import nn

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
#: What the last norm of a residual branch begins with. With 1, each block doubles what passes through it, and gradients
#: grow so much on their way to the first layer that a rounding error decides the loss after the next step. With 0, as
#: some begin, no loss would see the branch.
BRANCH = 0.25
BATCH_NORMS = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


def normalised(convolution, activation=None):
    """A convolution, batch norm, and an activation."""
    axes = convolution.weight.ndim - 2
    norm = BATCH_NORMS[axes](convolution.out_channels)
    return nn.Sequential(convolution, norm, *([activation] if activation else []))


def branch(*layers):
    """Normalised layers, the last of which is weak at first."""
    nn.init.constant_(layers[-1][1].weight, BRANCH)
    return nn.Sequential(*layers)


def he(network):
    """He et al. 2015: values keep their size from layer to layer, so the loss sees all layers from the start."""
    for layer in network.modules():
        if isinstance(layer, (*CONVOLUTIONS, *TRANSPOSED)):
            # PyTorch's own is a third of it, with which VGG-16's images are gone after 13 layers.
            mode = "fan_in" if isinstance(layer, TRANSPOSED) else "fan_out"
            nn.init.kaiming_normal_(layer.weight, mode=mode, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network
