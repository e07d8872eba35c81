"""``python -m convgrad_cy info``: versions, processor, threads and GPU of this installation."""

import platform
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import convgrad_cy as cg
from convgrad_cy import _repeat, cpu, dtypes, gpu
from convgrad_cy.cli import output
from convgrad_cy.cli.output import one_line
from convgrad_cy.gpu import compiler, cubins
from convgrad_cy.problem import DGRAD, ConvProblem
from convgrad_cy.settings.without_openmp import HINT

#: Files of the OpenMP runtimes of GNU, Intel and LLVM; those that a wheel brings have a hash in their names.
_RUNTIME = re.compile(r"/\S*/lib(?:gomp|iomp5|omp)(?:-[0-9a-f]+)?\.so[.0-9]*$", re.MULTILINE)


def bfloat16():
    """The package that gives NumPy bfloat16, or the reason why it is missing."""
    try:
        import ml_dtypes
    except ImportError as error:
        return f"no arrays of it: {one_line(error)}"
    return f"ml_dtypes {ml_dtypes.__version__}"


def runtimes(maps="/proc/self/maps"):
    """The OpenMP runtimes in this process, with a warning if there are several."""
    try:
        found = sorted(set(_RUNTIME.findall(Path(maps).read_text())))
    except OSError:
        return "unknown: this system does not list them"
    listed = ", ".join(found) or "none"
    if len(found) > 1:
        listed += " - WARNING: more than one; the waiting threads of each take the processors from the others"
    return listed


def _devices(cupy):
    """Yield (description, device) of each GPU; plans depend on the device."""
    if cupy.cuda.runtime.is_hip:
        raise RuntimeError("it is for ROCm, and the kernels are for NVIDIA GPUs")
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        device = gpu.device_of(number)
        memory = f"{properties['totalGlobalMem'] / 2**30:.0f} GiB"
        yield f"{properties['name'].decode()} (sm_{device.arch}, {device.processors} multiprocessors, {memory})", device


def _compiler():
    """The compiler of CUDA code, or the reason why there is none."""
    try:
        major, minor = compiler.version()
        compiler.compiled('extern "C" __global__ void nothing() {}', compiler.options_of(90, ()))
    except Exception as error:  # every exception is a reason why nothing can be compiled
        return f"none: {one_line(error)}"
    return f"NVRTC {major}.{minor}"


def _cubins():
    """The folder of compiled kernels, and their number and size."""
    sizes = [path.stat().st_size for path in cubins.folder().glob("*.cubin")]
    return f"{cubins.folder()} ({len(sizes)} kernels, {sum(sizes) / 2**20:.1f} MiB)"


def _kernels(device):
    """The family of kernels that computes a common layer, for each type: 3 x 3, 64 channels."""
    problem = ConvProblem(32, 1, 64, 64, (1, 56, 56), (1, 56, 56), (1, 3, 3), pad_begin=(0, 1, 1))
    shapes = ((32, 1, 64, 1, 56, 56), (1, 64, 64, 1, 3, 3), (32, 1, 64, 1, 56, 56))
    families = {}
    for dtype in dtypes.TABLE:
        views = [(shape, np.empty(shape, dtype.view).strides, 0) for shape in shapes]
        name = gpu.family_of(gpu.task_of(DGRAD, problem, dtype, "high", views, device))
        families.setdefault(name, []).append(dtype.name)
    return "; ".join(f"{name}: {', '.join(names)}" for name, names in families.items())


def gpu_lines():
    """The lines about GPUs, or the reason why there is none."""
    if find_spec("cupy") is None:
        return [("GPU", "none: CuPy is not installed")]
    # CuPy without a driver, or for another CUDA, raises various exceptions here. Each is a reason, not an error.
    try:
        import cupy

        devices = list(_devices(cupy))
    except Exception as error:
        return [("GPU", f"none: CuPy is installed, but {one_line(error)}"), ("GPU cache", _cubins())]
    if not devices:
        return [("GPU", "none: CuPy finds no device"), ("GPU cache", _cubins())]
    rows = [(name, _kernels(device)) for name, device in devices]
    return [
        ("CuPy", f"{cupy.__version__}, compiler: {_compiler()}"),
        ("GPU cache", _cubins()),
        *[row for name, kernels in rows for row in (("GPU", name), ("GPU kernels", kernels))],
    ]


def caches():
    """The cache sizes that plans use: from the system, or common sizes if it does not tell."""
    here = cpu.this_machine()
    sizes = (("L1", here.l1_bytes), ("L2", here.l2_bytes), ("L3", here.cache_bytes))
    return ", ".join(f"{name} {size >> 10} KiB" for name, size in sizes)


def _scratch_limit():
    limit = cg.get_scratch_limit()
    most = "4 times the bytes of its arrays, or 64 MiB if that is more" if limit is None else f"{limit} bytes"
    return f"a call takes at most {most}, without its arrays and the memory of each thread"


def _threads():
    """The number of threads, and the reason if a build without OpenMP has one."""
    if _repeat.has_openmp():
        return cpu.threads()
    if _repeat.lacks_openmp():
        return f"1: the compiler that built convgrad_cy had no OpenMP; {HINT}"
    return "1: built with CONVGRAD_CY_NO_OPENMP"


def lines():
    """``(name, value)`` pairs."""
    named = {"bfloat16": f"bfloat16 ({bfloat16()})"}
    return [
        ("convgrad_cy", cg.__version__),
        ("Python", f"{platform.python_version()}, NumPy {np.__version__}, {platform.system()} {platform.machine()}"),
        ("ISA", f"{cpu.isa} (available: {', '.join(cpu.available_isas())})"),
        ("caches", caches()),
        ("threads", _threads()),
        ("scratch", _scratch_limit()),
        ("OpenMP", cpu.openmp()),
        ("runtimes", runtimes()),
        ("dtypes", ", ".join(named.get(name, name) for name in dtypes.NAMES)),
        *gpu_lines(),
    ]


def print_info():
    for name, value in lines():
        output.line(f"{name:<13}{value}")
