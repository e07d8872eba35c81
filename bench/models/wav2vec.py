"""The feature encoder of wav2vec 2.0 (Baevski et al. 2020, "base") with a linear head on the mean of its frames."""

from torch import nn

from .layers import he

#: Kernel and stride of each layer. All have the same channels.
LAYERS = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))


class FeatureEncoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        channels, layers = model.inputs[0], []
        for number, (kernel, stride) in enumerate(LAYERS):
            layers.append(nn.Conv1d(channels, model.width, kernel, stride, bias=False))
            channels = model.width
            if number == 0:
                layers.append(nn.GroupNorm(channels, channels))
            layers.append(nn.GELU())
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, model.classes)
        he(self)

    def forward(self, x):
        return self.classifier(self.features(x).mean(2))
