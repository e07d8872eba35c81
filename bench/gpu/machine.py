"""A description of the GPU and its limits: products of matrices by type, and copies. Needs CuPy and PyTorch."""

from statistics import median

import cupy
import torch

import convgrad_cy as cg


def matmul_rate(dtype, size):
    """FLOP per second of PyTorch's product of two random square matrices."""
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.randn(size, size, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
    return 2 * size**3 / _best_seconds(lambda: a @ b)


def copy_rate(size=4 << 30):
    """Bytes per second, read and written, of a copy from memory to memory."""
    a, b = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    return 2 * size / _best_seconds(lambda: b.copy_(a))


def _best_seconds(run, calls=10):
    for _ in range(3):
        run()
    times = []
    for _ in range(calls):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return median(times)


def ceilings():
    """The limits of the GPU: products of matrices by type, and copies."""
    return {
        "bfloat16": matmul_rate("bfloat16", 8192),
        "float32": matmul_rate("float32", 8192),
        "float64": matmul_rate("float64", 4096),
        "copy": copy_rate(),
    }


def about():
    """The machine and the versions."""
    device = torch.cuda.get_device_properties(0)
    return {
        "gpu": device.name,
        "processors": device.multi_processor_count,
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "cupy": cupy.__version__,
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "ours": cg.__version__,
    }
