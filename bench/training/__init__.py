"""Whole training steps, with PyTorch's kernels of convolution and with ours in their place."""

#: How a step runs. NCX and NXC are channels first and last, as in the other benchmarks.
DTYPES = ("float32", "bfloat16")
LAYOUTS = ("NCX", "NXC")
MODES = ("eager", "compile")
