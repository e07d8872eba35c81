from . import cupy_cudnn as cupy_cudnn
from . import mindspore as mindspore
from . import onednn as onednn
from . import tensorflow as tensorflow

__all__ = ["cupy_cudnn", "mindspore", "onednn", "tensorflow"]

def __dir__() -> list[str]: ...
