"""DCGAN: Radford et al. 2016, for images of 64 pixels. The discriminator returns logits because autocast needs them."""

from itertools import pairwise

import torch
from torch import nn

from .layers import normalised

CODE = 100
IMAGE = 64
#: Channels of the layers between code and image, in multiples of the width; the discriminator has them in reverse.
FACTORS = (8, 4, 2, 1)


def generator(width, image):
    channels = [factor * width for factor in FACTORS]
    layers = [normalised(nn.ConvTranspose2d(CODE, channels[0], 4, bias=False), nn.ReLU(inplace=True))]
    for inputs, outputs in pairwise(channels):
        layers.append(normalised(nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.ReLU(inplace=True)))
    return nn.Sequential(*layers, nn.ConvTranspose2d(channels[-1], image, 4, 2, 1, bias=False), nn.Tanh())


def discriminator(width, image):
    channels = [factor * width for factor in reversed(FACTORS)]
    layers = [nn.Conv2d(image, channels[0], 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for inputs, outputs in pairwise(channels):
        layers.append(normalised(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)))
    return nn.Sequential(*layers, nn.Conv2d(channels[-1], 1, 4, bias=False), nn.Flatten(0))


class DCGAN(nn.Module):
    def __init__(self, model):
        super().__init__()
        if model.inputs[1:] != (IMAGE, IMAGE):
            raise ValueError(f"DCGAN has images of {IMAGE} pixels, not {model.inputs[1:]}")
        self.generator = generator(model.width, model.inputs[0])
        self.discriminator = discriminator(model.width, model.inputs[0])
        with torch.no_grad():  # as in the paper: normals of 0.02, around one in the norms
            for name, parameter in self.named_parameters():
                if parameter.ndim > 1:
                    parameter.normal_(0.0, 0.02)
                elif name.endswith("weight"):
                    parameter.normal_(1.0, 0.02)
