"""A stand-in for CuPy whose GPU is the simulator: it has the functions that the package needs, and nothing more.

NumPy refuses its arrays, as it refuses CuPy's, so the package cannot work on their elements without the GPU. Calls that
a driver refuses are refused (driver.py).
"""

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from driver import GLOBAL, RELAXED, THREAD_LOCAL, Attributes, Driver, DriverError, Kernel, most_registers
from fake_streams import Device, Stream, current_device, external_stream, get_current_stream, process
from sim import tensor_maps
from sim.executor import POISON, SimulationError, is_sanitized, load, run_launch, taken

from convgrad_cy.gpu.plan import Launch
from convgrad_cy.memo.bounded import Bounded

DEVICES = 2


class MemoryPointer:
    """An address in memory that is kept."""

    def __init__(self, memory, ptr, device_id):
        self.mem, self.ptr, self.device_id = memory, ptr, device_id

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr + offset, self.device_id)


class UnownedMemory:
    """Memory that another library owns."""

    def __init__(self, ptr, size, owner, device_id):
        self.ptr, self.size, self.device_id, self._owner = ptr, size, device_id, owner


def pointer_to(memory, offset):
    """``cupy.cuda.MemoryPointer``, whose arguments differ."""
    return MemoryPointer(memory, memory.ptr + offset, memory.device_id)


def _address(host):
    return host.__array_interface__["data"][0]


class ndarray:
    """An array on one of the devices. ``host`` is its memory as an array of NumPy."""

    __module__ = "cupy"

    def __init__(self, shape, dtype=float, memptr=None, strides=None):
        dtype = np.dtype(dtype)
        if memptr is None:
            memptr = alloc(int(np.prod(shape)) * dtype.itemsize)
        address = {
            "version": 3,
            "shape": tuple(shape),
            "strides": strides,
            "typestr": f"|V{dtype.itemsize}",
            "data": (memptr.ptr, False),
        }
        self._set(np.asarray(SimpleNamespace(__array_interface__=address)).view(dtype), memptr)

    def _set(self, host, memptr):
        self.host, self.data = host, memptr
        self.shape, self.dtype, self.strides = host.shape, host.dtype, host.strides
        self.ndim, self.size, self.itemsize, self.nbytes = host.ndim, host.size, host.itemsize, host.nbytes

    def _seen(self, host):
        """An array of this memory with other strides or another type."""
        new = object.__new__(type(self))
        new._set(host, MemoryPointer(self.data.mem, _address(host), self.data.device_id))
        return new

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __dlpack_device__(self):
        return 2, self.data.device_id

    @property
    def __cuda_array_interface__(self):
        return self.host.__array_interface__

    def __getitem__(self, index):
        return self._seen(self.host[index])

    def transpose(self, *axes):
        return self._seen(self.host.transpose(*axes))

    def swapaxes(self, one, other):
        return self._seen(self.host.swapaxes(one, other))

    def reshape(self, *shape):
        reshaped = self.host.reshape(*shape)
        if self.size and not np.shares_memory(reshaped, self.host):
            raise SimulationError("this reshape would copy")
        return self._seen(reshaped)

    def view(self, dtype):
        return self._seen(self.host.view(dtype))

    @property
    def device(self):
        return Device(self.data.device_id)

    @property
    def real(self):
        return self._seen(self.host.real)

    @property
    def imag(self):
        return self._seen(self.host.imag)

    def __iadd__(self, other):
        assert self.data.device_id == other.data.device_id == current_device()
        self.host += other.host
        return self

    def __isub__(self, other):
        assert self.data.device_id == other.data.device_id == current_device()
        self.host -= other.host
        return self

    def copy(self):
        return array(self.host)

    def get(self):
        process.driver.check()
        return self.host.copy()


def alloc(size):
    """Memory on the current device, filled with bytes that no result has."""
    memory = process.driver.allocate(size, current_device(), get_current_stream())
    memory.block.fill(POISON["ascending"])
    return MemoryPointer(memory, _address(memory.block), current_device())


def empty(shape, dtype=float):
    return ndarray(shape, dtype)


def zeros(shape, dtype=float):
    return array(np.zeros(shape, dtype))


def array(host, layout=np.ascontiguousarray):
    """A copy of a NumPy array, laid out in memory by a function of ``layouts``."""
    process.driver.check()
    host = layout(np.array(host))
    new = object.__new__(ndarray)
    new._set(host, MemoryPointer(host, _address(host), current_device()))
    return new


def _attributes(code, name):
    """Attributes of a kernel that no compiler for GPUs has seen, with the most registers that are allowed."""
    shared, threads = taken(code, name, is_sanitized())
    return Attributes(shared, most_registers(threads), threads)


def _place(pointer):
    """The device and the address of an array, of memory, or of an address."""
    if isinstance(pointer, int):
        return process.driver.device_at(pointer), pointer
    memory = getattr(pointer, "data", pointer)
    return memory.device_id, memory.ptr


class Function(Kernel):
    """A kernel, compiled by g++ and run by the simulator."""

    def __init__(self, code, name):
        super().__init__(process.driver, Device(), _attributes(code, name))
        self._name, self._start = name, load(code, name, is_sanitized())

    def __call__(self, grid, block, args, *, shared_mem=0):
        *pointers, arguments = args
        maps = pointers.pop().tobytes() if isinstance(pointers[-1], np.ndarray) else b""
        assert arguments.size == 1
        numbers = tuple(np.frombuffer(arguments.tobytes(), np.int64).tolist())
        launch = Launch("", (), self._name, grid, block, shared_mem, (), numbers)
        self.check_launch(launch, Device(), 8 * len(pointers) + len(maps) + arguments.nbytes)
        # Addresses, since a graph keeps no memory.
        places = [_place(pointer) for pointer in pointers]
        launches.append(self._name)
        number = len(launches)

        def run():
            for device, _ in places:
                if device != self._device.id:
                    self._driver.lose("CUDA_ERROR_ILLEGAL_ADDRESS", f"memory of device {device}")
            run_launch(self._start, launch, [address for _, address in places], "random", number, maps)

        self._driver.launch(get_current_stream(), run)


class RawModule:
    """A module from a text, or from a file that NVRTC's stand-in has made: its cubin is the text."""

    def __init__(self, *, code=None, path=None):
        self._code = Path(path).read_text() if code is None else code

    def compile(self):
        process.driver.check_safe("a module is loaded")

    def get_function(self, name):
        return Function(self._code, name)


class NVRTCError(RuntimeError):
    pass


class Nvrtc:
    """The stand-in for NVRTC. Its programs are lists of a text, and then its cubin."""

    NVRTCError = NVRTCError

    @staticmethod
    def getVersion():
        return 13, 0

    @staticmethod
    def createProgram(text, name, headers, include_names):
        return [text]

    @staticmethod
    def compileProgram(program, options):
        assert all(option.startswith("-") for option in options)
        compiled.append(program[0])
        program.append(program[0].encode())

    @staticmethod
    def getCUBIN(program):
        return program[1]

    @staticmethod
    def getProgramLog(program):
        return f"the log of {program[0]}"

    @staticmethod
    def destroyProgram(program):
        program.clear()


#: Names of the kernels that were launched, and texts that were compiled.
launches, compiled = [], []


def new_folder():
    """A folder for compiled kernels, which are not real ones. It is removed at the end of the process."""
    folder = tempfile.mkdtemp(prefix="fake_cupy.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _module():
    """The module, as ``import cupy`` would find it."""
    cupy = ModuleType("cupy")
    cupy.__version__ = "14"
    properties = {"name": b"Imagined GPU", "totalGlobalMem": 80 << 30}
    cupy.cuda = SimpleNamespace(
        Device=Device,
        Stream=Stream,
        ExternalStream=external_stream,
        alloc=alloc,
        MemoryPointer=pointer_to,
        UnownedMemory=UnownedMemory,
        device=SimpleNamespace(get_device_id=current_device),
        get_current_stream=get_current_stream,
        runtime=SimpleNamespace(
            is_hip=False,
            getDeviceCount=lambda: DEVICES,
            getDeviceProperties=lambda number: properties,
            streamCaptureModeGlobal=GLOBAL,
            streamCaptureModeThreadLocal=THREAD_LOCAL,
            streamCaptureModeRelaxed=RELAXED,
            CUDARuntimeError=DriverError,
        ),
        nvrtc=Nvrtc,
    )
    cupy.ndarray, cupy.empty, cupy.zeros, cupy.array, cupy.RawModule = ndarray, empty, zeros, array, RawModule
    return cupy


def install(monkeypatch):
    """Install the module as CuPy, and forget all that was known of earlier arrays."""
    from convgrad_cy import calls
    from convgrad_cy.gpu import cubins, tensor_map, work

    for remembered in (work.device_of, work._function):
        remembered.cache_clear()
    monkeypatch.setattr(work, "_MODULES", {})
    monkeypatch.setattr(cubins, "_own", cubins._OwnFolder())
    monkeypatch.setenv(cubins.VARIABLE, new_folder())
    monkeypatch.setattr(tensor_map, "_driver", lambda: tensor_maps.LIBRARY)
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    monkeypatch.setattr(process, "driver", Driver())
    launches.clear()
    compiled.clear()
    monkeypatch.setitem(sys.modules, "cupy", _module())
