"""Carries out a ``Plan`` on NumPy arrays: g++ compiles the text of each kernel, and the simulator runs it.

Compiled kernels are kept in a folder below the system's temporary one, by the texts and options that they depend on.
"""

import ctypes
import hashlib
import os
import platform
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import which
from threading import Lock
from typing import NamedTuple

import numpy as np

from convgrad_cy.gpu import module

from . import tensor_maps

FOLDER = Path(__file__).parent
ENGINE = ("fiber.cpp", "scheduler.cpp", "warp.cpp", "async.cpp", "wgmma.cpp", "engine.cpp", "alignment.cpp")
#: The orders of warps, and the initial content of memory in each: NaN in every floating type, whose product with zero
#: is wrong, too; and large numbers, which no kernel repairs as it may repair NaN.
POISON = {"ascending": 0xFF, "descending": 0x7B, "random": 0x7B}
SCHEDULES = tuple(POISON)
#: Bytes around each operand and workspace that no kernel may write.
GUARD = 256
_GUARD_BYTE = 0xA5
#: CUDA's limits for any launch.
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS = (1024, 1024, 64)
#: Dynamic shared memory begins at a multiple of this (DYNAMIC_SHARED of types.cuh), behind the static variables.
_DYNAMIC_SHARED = 128

COMPILER = which("g++")
FLAGS = ("-std=c++17", "-fPIC", "-ffp-contract=off", "-Wno-unknown-pragmas", f"-I{FOLDER}")
FAST = ("-O1", "-fsanitize=alignment", "-fno-sanitize-recover=alignment")
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
if platform.machine() == "x86_64":
    FLAGS += ("-march=native",)  # fma() as an instruction


class SimulationError(Exception):
    """A kernel or a launch broke a rule of CUDA."""


class _Triple(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class _Launch(ctypes.Structure):
    """``simulator::Launch`` of launch.hpp."""

    _fields_ = [
        ("grid", _Triple),
        ("block", _Triple),
        ("schedule", ctypes.c_int32),
        ("poison", ctypes.c_int32),
        ("seed", ctypes.c_uint64),
        ("shared", ctypes.c_int64),
        ("pointer_count", ctypes.c_int64),
        ("argument_count", ctypes.c_int64),
        ("pointers", ctypes.POINTER(ctypes.c_void_p)),
        ("arguments", ctypes.POINTER(ctypes.c_int64)),
        ("map_bytes", ctypes.c_int64),
        ("maps", ctypes.c_char_p),
        ("static_shared", ctypes.c_void_p * 2),
    ]


def is_sanitized():
    """Whether this process was started with the sanitizers' library, as ``SANITIZED`` code needs it."""
    return "libasan" in os.environ.get("LD_PRELOAD", "")


@cache
def folder():
    """The folder of compiled kernels."""
    path = Path(os.environ.get("CONVGRAD_SIMULATOR_CACHE", f"{tempfile.gettempdir()}/convgrad_simulator_{os.getuid()}"))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        raise PermissionError(f"{path} must belong to this user")
    return path


@cache
def _engine_hash():
    digest = hashlib.sha256(subprocess.check_output([COMPILER, "--version"]))
    for path in sorted(FOLDER.glob("*.?pp")):
        digest.update(path.read_bytes())
    return digest


def _compile(name, arguments, source=""):
    """The compiler's output for these. It is made again only if a dependency has changed."""
    digest = _engine_hash().copy()
    for part in (*arguments, source):
        digest.update(part.encode() + b"\0")
    target = folder() / f"{digest.hexdigest()[:32]}{name}"
    if not target.exists():
        unfinished = f"{target}.{os.getpid()}"
        command = [COMPILER, *arguments, "-o", unfinished]
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run(command, input=source, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SimulationError(f"g++ does not compile it:\n{done.stderr}")
        os.replace(unfinished, target)
    return target


@cache
def _engine(mode):
    """The simulator, one library for all kernels. Each kernel has one block at a time, but a stack for every thread."""
    objects = [str(_compile(".o", [*FLAGS, *mode, "-c", str(FOLDER / name)])) for name in ENGINE]
    return str(_compile(".so", ["-shared", *(mode if mode is SANITIZED else ()), *objects]))


@cache
def _prelude(mode):
    """The folder of the precompiled launch.hpp, which takes longer to compile than a kernel."""
    made = _compile(".gch", [*FLAGS, "-fvisibility=hidden", *mode, "-x", "c++-header", str(FOLDER / "launch.hpp")])
    place = made.with_suffix("") / "launch.hpp.gch"  # the name under which the compiler looks for it
    place.parent.mkdir(exist_ok=True)
    with suppress(FileExistsError):
        os.link(made, place)
    return place.parent


@cache
def _library(text, kernel, sanitize):
    """A CUDA text, compiled, with the functions of launch.hpp for one of its kernels."""
    mode = SANITIZED if sanitize else FAST
    source = f'#include "launch.hpp"\n{text}\n#line 1 "export"\nSIMULATOR_EXPORT({kernel})\n'
    command = [f"-I{_prelude(mode)}", *FLAGS, "-fvisibility=hidden", *mode, "-shared", "-x", "c++", "-"]
    if not sanitize:
        # The simulator has the function that -fsanitize=alignment calls, and the libraries that a kernel needs, so the
        # compiler's libraries are left out.
        command.append("-nodefaultlibs")
    return ctypes.CDLL(str(_compile(".so", [*command, "-x", "none", _engine(mode)], source)))


@cache
def load(text, kernel, sanitize=False):
    """The function that runs a kernel of a CUDA text."""
    start = _library(text, kernel, sanitize).simulator_start
    start.restype = ctypes.c_char_p
    start.argtypes = [ctypes.POINTER(_Launch)]
    return start


class Taken(NamedTuple):
    """The parts of a multiprocessor that a kernel needs, according to its text."""

    shared: int  # bytes of all static variables of the text, before dynamic shared memory
    threads: int  # the most in a block


def taken(text, kernel, sanitize=False):
    """The needs of a kernel of a CUDA text."""
    library = _library(text, kernel, sanitize)
    library.simulator_static_shared.restype = library.simulator_most_threads.restype = ctypes.c_int64
    static = -(-library.simulator_static_shared() // _DYNAMIC_SHARED) * _DYNAMIC_SHARED
    return Taken(static, library.simulator_most_threads() or _MOST_THREADS[0])


_LIBC = ctypes.CDLL(None)
_LIBC.malloc.restype, _LIBC.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_LIBC.free.restype, _LIBC.free.argtypes = None, [ctypes.c_void_p]


class _Memory:
    """Separate bytes for one operand or workspace, aligned to 16 bytes as in the array.

    There are guards on both sides. With the sanitizers, these are the guards of their malloc, which see reads, too.
    """

    def __init__(self, size, origin=None, poison=0):
        self.size, self.origin = size, origin
        self._guard = 0 if is_sanitized() else GUARD
        self._skip = self._guard + (origin or 0) % 16
        self._block = _LIBC.malloc(self._skip + size + self._guard)
        self.begin = self._block + self._skip
        self._write_guards()
        if origin is None:
            ctypes.memset(self.begin, poison, size)
        else:
            ctypes.memmove(self.begin, origin, size)

    def _guards(self):
        return (self._block, self._skip), (self.begin + self.size, self._guard)

    def _write_guards(self):
        for begin, size in self._guards():
            ctypes.memset(begin, _GUARD_BYTE, size)

    def is_intact(self):
        return all(ctypes.string_at(begin, size) == bytes([_GUARD_BYTE]) * size for begin, size in self._guards())

    def is_unchanged(self):
        return ctypes.string_at(self.begin, self.size) == ctypes.string_at(self.origin, self.size)

    def __del__(self):
        _LIBC.free(self._block)


def _copy_of(array):
    """The memory of an array's copy, and the address of its first element."""
    steps = [stride * (size - 1) for stride, size in zip(array.strides, array.shape, strict=True) if size]
    before = -sum(step for step in steps if step < 0)
    size = before + sum(step for step in steps if step > 0) + array.itemsize if array.size else 0
    memory = _Memory(size, array.__array_interface__["data"][0] - before)
    return memory, memory.begin + before


def check_launch(launch):
    """Refuse a grid, a block or arguments beyond CUDA's limits."""
    for name, sizes, limits in (("grid", launch.grid, _MOST_BLOCKS), ("block", launch.block, _MOST_THREADS)):
        if len(sizes) != 3 or not all(0 < size <= most for size, most in zip(sizes, limits, strict=True)):
            raise SimulationError(f"{launch.kernel}: {name} must be within {limits} and not empty, was {sizes}")
    if np.prod(launch.block) > _MOST_THREADS[0]:
        raise SimulationError(f"{launch.kernel}: a block has at most 1024 threads, not {launch.block}")
    if not all(-(2**63) <= value < 2**63 for value in launch.arguments):
        raise SimulationError(f"{launch.kernel}: arguments must fit into 64 bits, were {launch.arguments}")


_lock = Lock()  # a compiled kernel has one block at a time


def run_launch(start, launch, addresses, schedule, seed=0, maps=None):
    """Run the compiled kernel of one launch on memory at these addresses, with its tensor maps or the given ones."""
    check_launch(launch)
    if maps is None:
        maps = tensor_maps.encoded(launch.maps, addresses)
    pointers = (ctypes.c_void_p * len(addresses))(*addresses)
    arguments = (ctypes.c_int64 * len(launch.arguments))(*launch.arguments)
    what = _Launch(
        _Triple(*launch.grid),
        _Triple(*launch.block),
        SCHEDULES.index(schedule),
        POISON[schedule],
        seed,
        launch.shared,
        len(addresses),
        len(arguments),
        pointers,
        arguments,
        len(maps),
        maps,
    )
    with _lock:
        problem = start(ctypes.byref(what))
        if problem is not None:
            raise SimulationError(f"{launch.source}, {launch.kernel}: {problem.decode()}")


def execute(plan, arrays, written, schedule="ascending", seed=0, text=module.text):
    """Carry out a plan on the arrays of source, filter and target. The array number ``written`` changes.

    ``text`` returns the CUDA text of a source file and macros.
    """
    copies = [_copy_of(array) for array in arrays]
    spaces = [_Memory(size, poison=POISON[schedule]) for size in plan.workspaces]
    addresses = [address for _, address in copies] + [space.begin for space in spaces]
    for launch in plan.launches:
        start = load(text(launch.source, launch.macros), launch.kernel, is_sanitized())
        run_launch(start, launch, [addresses[number] for number in launch.pointers], schedule, seed)
        for number, memory in enumerate([*(copy for copy, _ in copies), *spaces]):
            if not memory.is_intact():
                raise SimulationError(f"{launch.kernel} wrote outside of operand {number}")
    for number, (memory, _) in enumerate(copies):
        if number == written:
            ctypes.memmove(memory.origin, memory.begin, memory.size)
        elif not memory.is_unchanged():
            raise SimulationError(f"operand {number} was written, which is only read")
