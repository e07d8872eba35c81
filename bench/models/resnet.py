"""ResNet-50: He et al. 2016. The 3×3 layers have the stride, as in torchvision."""

from torch import nn
from torch.nn import functional

from .layers import branch, he, normalised

#: Blocks of each stage, and the stride of its first block.
STAGES = ((3, 1), (4, 2), (6, 2), (3, 2))


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.branch = branch(
            normalised(convolution(inputs, width, 1), nn.ReLU(inplace=True)),
            normalised(convolution(width, width, 3, stride), nn.ReLU(inplace=True)),
            normalised(convolution(width, outputs, 1)),
        )
        self.shortcut = nn.Identity()
        if (inputs, stride) != (outputs, 1):
            self.shortcut = normalised(convolution(inputs, outputs, 1, stride))

    def forward(self, x):
        return functional.relu(self.branch(x) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self, model):
        super().__init__()
        width, channels = model.width, model.width
        layers = [
            normalised(convolution(model.inputs[0], channels, 7, 2), nn.ReLU(inplace=True)),
            nn.MaxPool2d(3, 2, 1),
        ]
        for blocks, stride in STAGES:
            for i in range(blocks):
                layers.append(Bottleneck(channels, width, stride if i == 0 else 1))
                channels = 4 * width
            width *= 2
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, model.classes)
        he(self)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))
