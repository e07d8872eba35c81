"""Networks whose training steps ``python -m bench.training`` times: standard architectures, written plainly.

Each file has one family; the networks of JAX are in jax/. This file names the networks and their data, and needs no
framework: a module is imported when its network is built. The batches and sizes make a step of PyTorch take a second or
a few on two cores, and a step of JAX 0.1 to 0.4 seconds.
"""

from importlib import import_module
from typing import NamedTuple


class Model(NamedTuple):
    """A network, the data of a step, and the rate of its SGD."""

    title: str
    network: str  # module.function, or jax.module.function
    batch: int
    inputs: tuple  # shape of one example: channels, axes
    rate: float
    classes: int | None = None  # None: adversarial, there are no targets
    dense: bool = False  # a target for each position
    width: int = 64  # channels that all others are multiples of
    blocked: bool = True  # whether PyTorch has a channels_last format for it
    framework: str = "torch"


MODELS = {
    "resnet50": Model("ResNet-50", "resnet.ResNet50", 4, (3, 224, 224), 1e-3, 1000),
    # With a smaller batch, the fully connected layers would dominate a step: they have 90 % of the weights.
    "vgg16": Model("VGG-16", "vgg.VGG16", 4, (3, 224, 224), 1e-2, 1000),
    "unet": Model("U-Net", "unet.unet2d", 1, (3, 192, 192), 1e-2, 2, dense=True),
    "dcgan": Model("DCGAN", "dcgan.DCGAN", 32, (3, 64, 64), 1e-4),
    "convnext_tiny": Model("ConvNeXt-T", "convnext.ConvNeXtTiny", 4, (3, 224, 224), 1e-3, 1000, width=96),
    "mobilenet_v2": Model("MobileNetV2", "mobilenet.MobileNetV2", 8, (3, 224, 224), 3e-3, 1000, width=32),
    "wav2vec2": Model(
        "wav2vec 2.0, feature encoder", "wav2vec.FeatureEncoder", 4, (1, 40000), 3e-2, 32, width=512, blocked=False
    ),
    "unet3d": Model("3-D U-Net", "unet.unet3d", 1, (3, 32, 48, 48), 3e-2, 3, dense=True),
    "jax_vgg": Model("VGG-like", "jax.vgg.vgg", 4, (3, 64, 64), 1e-4, 10, framework="jax"),
    "jax_resnet18": Model("ResNet-18, group norm", "jax.resnet.resnet18", 4, (3, 128, 128), 1e-3, 10, framework="jax"),
    "jax_unet": Model("U-Net", "jax.unet.unet", 2, (3, 128, 128), 1e-2, 2, dense=True, width=32, framework="jax"),
    "jax_convnext": Model("ConvNeXt-like", "jax.convnext.convnext", 4, (3, 128, 128), 1e-3, 10, framework="jax"),
}


def names(framework):
    """The names of a framework's models."""
    return [name for name, model in MODELS.items() if model.framework == framework]


#: Small enough for a test: width, batch, size of each axis of a model.
TINY = {
    "resnet50": (8, 2, (64, 64)),
    "vgg16": (4, 2, (32, 32)),
    "unet": (4, 1, (32, 32)),
    "dcgan": (4, 2, (64, 64)),
    "convnext_tiny": (8, 2, (64, 64)),
    "mobilenet_v2": (8, 2, (64, 64)),
    "wav2vec2": (8, 2, (4000,)),
    "unet3d": (4, 1, (16, 16, 16)),
    "jax_vgg": (8, 2, (32, 32)),
    "jax_resnet18": (8, 2, (64, 64)),
    "jax_unet": (8, 1, (32, 32)),
    "jax_convnext": (8, 2, (64, 64)),
}


def chosen(name, small=False):
    """A model of the table, at full size or small."""
    model = MODELS[name]
    if not small:
        return model
    width, batch, size = TINY[name]
    return model._replace(width=width, batch=batch, inputs=(model.inputs[0], *size))


def build(model):
    """The network: a module of PyTorch with its first weights, or a function of jax/."""
    module, _, name = model.network.rpartition(".")
    return getattr(import_module(f".{module}", __name__), name)(model)
