"""VGG-16: Simonyan and Zisserman 2015, configuration D.

It has no dropout, because both libraries have to see the same network.
"""

from torch import nn

from .layers import he

#: Channels, in multiples of the width, of the layers between two poolings.
STAGES = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))


class VGG16(nn.Module):
    def __init__(self, model):
        super().__init__()
        channels, layers = model.inputs[0], []
        for stage in STAGES:
            for factor in stage:
                layers += [nn.Conv2d(channels, factor * model.width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = factor * model.width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7))
        hidden = 64 * model.width
        self.classifier = nn.Sequential(
            nn.Linear(49 * channels, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, model.classes),
        )
        he(self)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))
