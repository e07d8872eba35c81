"""``python -m convgrad_cy compile``: the GPU kernels of layers are compiled ahead, on any machine that has NVRTC."""

import argparse
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from .. import dtypes, gpu
from ..checks.keywords import PRECISIONS
from ..explanation import FUNCTIONS, gpu_tasks
from ..gpu import compiler, cubins
from ..gpu.known import GPUS
from ..gpu.module import text
from ..gpu.work import described
from . import layer, output
from .problem_text import LETTERS, parse

DESCRIPTION = f"""\
Compile the GPU kernels of layers, so that no first call compiles. It needs CuPy and NVRTC, but no GPU.

The kernels go to the folder that "info" prints, by default ~/.cache/convgrad_cy, or to the folder {cubins.VARIABLE}.
Copy it to the machine with the GPU, where CuPy must find the same version of NVRTC. Kernels that are there already are
not compiled again.
"""
EPILOG = f"""\
the letters of --layers, each followed by a number (the value of a missing letter is in brackets):
{LETTERS}

The kernels of a layer depend on the GPU as well as on its compute capability. They are compiled for these GPUs:
{chr(10).join(f"  {arch}  {', '.join(named)}" for arch, named in GPUS.items())}
On other GPUs, a first call may still have to compile a kernel.

examples:
  convgrad_cy compile --arch 90 --layers mb32ic64ih56oc64kh3ph1 --dtype bfloat16 --data-format NHWC --filter-format HWIO
  convgrad_cy compile --arch 80 90 --layers @layers.txt
"""


class NotCompiled(Exception):
    """The layers, the compiler or the folder cannot be used; the message has the reason."""


def architecture(given):
    """Parse a compute capability: 90, 9.0 or sm_90."""
    arch = given.removeprefix("sm_").replace(".", "")
    if not arch.isdecimal() or int(arch) not in GPUS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(map(str, GPUS))}, not {given!r}")
    return int(arch)


def add_arguments(command):
    """Add the arguments of the command."""
    command.description, command.epilog = DESCRIPTION, EPILOG
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_argument(
        "--arch", metavar="N", nargs="+", type=architecture, required=True, help="compute capabilities: 90 for 9.0"
    )
    command.add_argument(
        "--layers",
        metavar="TEXT",
        nargs="+",
        required=True,
        help="layers in letters, such as mb8ic64ih56oc64kh3ph1; @FILE has one on each line",
    )
    command.add_argument(
        "--function",
        metavar="FUNCTION",
        nargs="+",
        choices=FUNCTIONS,
        default=FUNCTIONS[:3],
        help=f"some of {', '.join(FUNCTIONS)} (the first three)",
    )
    command.add_argument(
        "--dtype", metavar="TYPE", nargs="+", choices=dtypes.NAMES, default=["float32"], help="(float32)"
    )
    command.add_argument("--data-format", metavar="NCX", help="of x and y: NCX, NXC or the like, NHWC too (NCX)")
    command.add_argument("--filter-format", metavar="OIX", help="of w: OIX, XIO or the like, HWIO too (OIX)")
    command.add_argument("--precision", choices=PRECISIONS, help="of float32 (high)")


def _lines(given):
    """The layers as text: the arguments, and the lines of files with @ before their name."""
    for one in given:
        if not one.startswith("@"):
            yield one
            continue
        try:
            lines = Path(one[1:]).read_text().splitlines()
        except (OSError, ValueError) as error:
            raise NotCompiled(f"argument --layers: {one[1:]!r} cannot be read: {output.reason(error)}") from error
        yield from filter(None, (line.partition("#")[0].strip() for line in lines))


def _tasks(options, devices):
    """The tasks of all layers, functions and types on all devices."""
    keywords = {
        name: value for name in ("data_format", "filter_format", "precision") if (value := getattr(options, name))
    }
    for line in _lines(options.layers):
        for function in options.function:
            forward = "conv_transpose" if function.startswith("conv_transpose") else "conv"
            try:
                problem = parse(line, forward == "conv_transpose")
                for dtype in options.dtype:
                    shapes, own = layer.of_problem(forward, problem, dtype, keywords).call(function)
                    yield from gpu_tasks(function, shapes, dtype, devices, **own)
            except (TypeError, ValueError, OverflowError, MemoryError) as error:
                raise NotCompiled(f"argument --layers: {error}") from error


def _modules(options, version):
    """The distinct texts of all layers with their options for NVRTC."""
    devices = [
        described(arch, attributes, version, True) for arch in options.arch for attributes in GPUS[arch].values()
    ]
    return dict.fromkeys(
        (text(launch.source, launch.macros), compiler.options_of(task.device.arch, launch.macros))
        for task in _tasks(options, devices)
        for launch in gpu.plan(task).launches
    )


def _compile(module):
    cubins.keep(*module, compiler.compiled(*module))


def _compile_all(modules):
    """Compile modules in as many threads as there are processors, and show the progress."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        futures = [pool.submit(_compile, module) for module in modules]
        try:
            for done, future in enumerate(as_completed(futures)):
                future.result()
                output.progress(done + 1, len(futures), f"{done + 1} of {len(futures)} kernels")
        finally:
            pool.shutdown(cancel_futures=True)
            output.clear_progress()


def compile_layers(options):
    """Run the command."""
    try:
        version = compiler.version()
        modules = _modules(options, version)
        missing = [module for module in modules if cubins.found(*module) is None]
        _compile_all(missing)
    except (ImportError, compiler.CompileError) as error:
        raise NotCompiled(str(error)) from error
    except OSError as error:
        reason = f"{cubins.folder()} cannot be written: {output.reason(error)}"
        raise NotCompiled(f"{reason}; set {cubins.VARIABLE} to another folder") from error
    output.line(f"compiled {len(missing)} of {len(modules)} kernels with NVRTC {version[0]}.{version[1]}")
    output.line(f"folder: {cubins.folder()}")
