"""Operations of MindSpore, TensorFlow, oneDNN Graph and CuPy's cuDNN on NumPy and CuPy arrays, by framework."""

__all__ = ["cupy_cudnn", "mindspore", "onednn", "tensorflow"]


def __dir__() -> list[str]:
    return __all__
