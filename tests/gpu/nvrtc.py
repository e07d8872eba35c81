"""NVRTC and cuobjdump of the pip wheels: they turn CUDA text into the assembler's report and the instructions."""

import ctypes
import os
import re
import subprocess
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from convgrad_cy.gpu.compiler import OPTIONS

#: The version that CI installs, and the version of the measured machine.
VERSION = (13, 0)
_SITE = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
_REPORT = re.compile(
    r"Function properties for (?P<kernel>\w+)\n\D*(?P<stack>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads\n.*Used (?P<registers>\d+) registers"
    r"(?:.* (?P<shared>\d+) bytes smem)?"
)
#: Each of the four parts of a multiprocessor has this many registers; a warp gets a multiple of the portion.
_REGISTERS, _PORTION = 16384, 256


class Report(NamedTuple):
    """The report of ptxas about one kernel."""

    stack: int
    spills: int
    registers: int
    shared: int  # static bytes

    @property
    def warps(self):
        """The number of warps for which a multiprocessor has registers."""
        return 4 * (_REGISTERS // (-(-self.registers * 32 // _PORTION) * _PORTION))


class CompileError(Exception):
    """NVRTC refuses the text."""


@cache
def _library(site=_SITE):
    """NVRTC in the folder ``nvidia`` of some installed wheels, or None."""
    found = sorted(site.glob("*/lib/libnvrtc.so.*[0-9]"))
    if not found:
        return None
    for builtins in found[0].parent.glob("libnvrtc-builtins.so.*[0-9]"):
        ctypes.CDLL(str(builtins))  # otherwise NVRTC would search only the system's path
    return ctypes.CDLL(str(found[0]))


@cache
def why_missing():
    """The reason why there is no NVRTC of the right version, or None."""
    if _library() is None:
        return "the wheel nvidia-cuda-nvrtc is not installed"
    major, minor = version(_SITE)
    if (major, minor) != VERSION:
        return f"NVRTC is {major}.{minor} and not the {VERSION[0]}.{VERSION[1]} of CI"
    return None


def version(site):
    """The version of NVRTC in a folder, as two numbers."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library(site).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def others():
    """Folders with NVRTC of other versions: ``CONVGRAD_CY_NVRTCS`` has a folder of pip's --target for each."""
    if (folder := os.environ.get("CONVGRAD_CY_NVRTCS")) is None:
        return []
    return sorted(path / "nvidia" for path in Path(folder).iterdir())


def disassembler():
    """The folder with cuobjdump and nvdisasm of the pip wheels, or None."""
    found = [path.parent for path in _SITE.glob("*/bin/cuobjdump") if (path.parent / "nvdisasm").exists()]
    return found[0] if found else None


def compile(text, arch, site=_SITE):
    """A cubin with the package's options, and the report of ptxas for each kernel in it."""
    nvrtc, program = _library(site), ctypes.c_void_p()
    arguments = [option.encode() for option in (*OPTIONS, f"-arch={arch}", "--ptxas-options=-v")]
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kern.cu", 0, None, None)
    try:
        failed = nvrtc.nvrtcCompileProgram(program, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        log = _fetch(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).rstrip(b"\0").decode()
        if failed:
            raise CompileError(log)
        cubin = _fetch(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    reports = {
        found["kernel"]: Report(
            int(found["stack"]),
            int(found["stores"]) + int(found["loads"]),
            int(found["registers"]),
            int(found["shared"] or 0),
        )
        for found in _REPORT.finditer(log)
    }
    return cubin, reports, log


def _fetch(size_of, get, program):
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    get(program, data)
    return data.raw


def sass(cubin):
    """The instructions of a cubin, as cuobjdump prints them."""
    tools = disassembler()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
        command = [tools / "cuobjdump", "--dump-sass", file.name]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
