"""Networks whose training steps ``python -m bench.training`` times: standard architectures, written plainly.

Each file has one family. This one says what is trained, and needs no PyTorch: a module is imported when its network is
built. Batches and sizes are such that a step takes a second or a few on two cores.
"""

from importlib import import_module
from typing import NamedTuple


class Model(NamedTuple):
    """A network, the data of a step, and the rate of its SGD."""

    title: str
    network: str  # module.function
    batch: int
    inputs: tuple  # shape of one example: channels, axes
    rate: float
    classes: int | None = None  # None: adversarial, there are no targets
    dense: bool = False  # a target for each position
    width: int = 64  # channels that all others are multiples of
    blocked: bool = True  # whether PyTorch has a channels_last format for it


MODELS = {
    "resnet50": Model("ResNet-50", "resnet.ResNet50", 4, (3, 224, 224), 1e-3, 1000),
    # With a smaller batch a step is one of the fully connected layers, whose weights are 90 % of all.
    "vgg16": Model("VGG-16", "vgg.VGG16", 4, (3, 224, 224), 1e-2, 1000),
    "unet": Model("U-Net", "unet.unet2d", 1, (3, 192, 192), 1e-2, 2, dense=True),
    "dcgan": Model("DCGAN", "dcgan.DCGAN", 32, (3, 64, 64), 1e-4),
    "convnext_tiny": Model("ConvNeXt-T", "convnext.ConvNeXtTiny", 4, (3, 224, 224), 1e-3, 1000, width=96),
    "mobilenet_v2": Model("MobileNetV2", "mobilenet.MobileNetV2", 8, (3, 224, 224), 3e-3, 1000, width=32),
    "wav2vec2": Model(
        "wav2vec 2.0, feature encoder", "wav2vec.FeatureEncoder", 4, (1, 40000), 3e-2, 32, width=512, blocked=False
    ),
    "unet3d": Model("3-D U-Net", "unet.unet3d", 1, (3, 32, 48, 48), 3e-2, 3, dense=True),
}
NAMES = list(MODELS)

#: Of each model, small enough for a test: width, batch, size of each axis.
TINY = {
    "resnet50": (8, 2, (64, 64)),
    "vgg16": (4, 2, (32, 32)),
    "unet": (4, 1, (32, 32)),
    "dcgan": (4, 2, (64, 64)),
    "convnext_tiny": (8, 2, (64, 64)),
    "mobilenet_v2": (8, 2, (64, 64)),
    "wav2vec2": (8, 2, (4000,)),
    "unet3d": (4, 1, (16, 16, 16)),
}


def chosen(name, small=False):
    """A model of the table, or the same in small."""
    model = MODELS[name]
    if not small:
        return model
    width, batch, size = TINY[name]
    return model._replace(width=width, batch=batch, inputs=(model.inputs[0], *size))


def build(model):
    """The network, with weights from PyTorch's generator of random numbers."""
    module, name = model.network.split(".")
    return getattr(import_module(f".{module}", __name__), name)(model)
