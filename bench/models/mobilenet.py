"""MobileNetV2, width 1: Sandler et al. 2018, without dropout, because both libraries have to see the same network."""

from torch import nn

from .layers import branch, he, normalised

#: Fields of each stage, for a width of 32: expansion, channels, blocks, stride of the first block.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
WIDTH, HEAD = 32, 1280


def layer(inputs, outputs, kernel, stride=1, groups=1, activation=True):
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return normalised(convolution, nn.ReLU6(inplace=True) if activation else None)


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, expansion, stride):
        super().__init__()
        hidden = expansion * inputs
        layers = [layer(inputs, hidden, 1)] if expansion > 1 else []
        layers += [layer(hidden, hidden, 3, stride, groups=hidden), layer(hidden, outputs, 1, activation=False)]
        self.adds = stride == 1 and inputs == outputs
        self.branch = branch(*layers) if self.adds else nn.Sequential(*layers)

    def forward(self, x):
        return x + self.branch(x) if self.adds else self.branch(x)


class MobileNetV2(nn.Module):
    def __init__(self, model):
        super().__init__()
        channels = model.width
        layers = [layer(model.inputs[0], channels, 3, 2)]
        for expansion, width, blocks, stride in STAGES:
            outputs = width * model.width // WIDTH
            for i in range(blocks):
                layers.append(InvertedResidual(channels, outputs, expansion, stride if i == 0 else 1))
                channels = outputs
        head = HEAD * model.width // WIDTH
        self.features = nn.Sequential(*layers, layer(channels, head, 1))
        self.classifier = nn.Linear(head, model.classes)
        he(self)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))
