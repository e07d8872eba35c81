"""``python -m convgrad_cy info``: what this installation runs on."""

import platform
from importlib.util import find_spec

import numpy as np

import convgrad_cy as cg
from convgrad_cy import cpu, dtypes


def one_line(error):
    """What an exception says, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def bfloat16():
    """The package that brings bfloat16 to NumPy, or why there is none."""
    try:
        import ml_dtypes
    except ImportError as error:
        return f"no arrays of it: {one_line(error)}"
    return f"ml_dtypes {ml_dtypes.__version__}"


def gpu():
    """The GPUs that CuPy finds, or why there are none."""
    if find_spec("cupy") is None:
        return "none: CuPy is not installed"
    # A CuPy without a driver, or for another CUDA, fails here in ways of its own: each a reason, none an error.
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
        names = [cupy.cuda.runtime.getDeviceProperties(device)["name"].decode() for device in range(count)]
    except Exception as error:
        return f"none: CuPy is installed, but {one_line(error)}"
    return f"{', '.join(names)} (CuPy {cupy.__version__})" if names else "none: CuPy finds no device"


def lines():
    """``(name, value)`` pairs."""
    named = {"bfloat16": f"bfloat16 ({bfloat16()})"}
    return [
        ("convgrad_cy", cg.__version__),
        ("Python", f"{platform.python_version()}, NumPy {np.__version__}, {platform.system()} {platform.machine()}"),
        ("ISA", f"{cpu.isa} (available: {', '.join(cpu.available_isas())})"),
        ("threads", cpu.threads()),
        ("OpenMP", cpu.openmp()),
        ("dtypes", ", ".join(named.get(name, name) for name in dtypes.NAMES)),
        ("GPU", gpu()),
    ]


def print_info():
    for name, value in lines():
        print(f"{name:<13}{value}")
