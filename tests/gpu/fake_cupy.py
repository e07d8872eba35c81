"""A module in the place of CuPy whose GPU is the simulator: what the package needs of it, and nothing more.

Its arrays are refused by NumPy, as CuPy's are, so the package cannot work on their elements behind the GPU's back.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from sim.executor import POISON, SimulationError, is_sanitized, load, run_launch

from convgrad_cy.gpu.plan import Launch

DEVICES = 2


class MemoryPointer:
    """An address in memory that is kept."""

    def __init__(self, memory, ptr, device_id):
        self.mem, self.ptr, self.device_id = memory, ptr, device_id

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr + offset, self.device_id)


def _pointer_to(host, device):
    return MemoryPointer(host, host.__array_interface__["data"][0], device)


class ndarray:
    """An array on one of the devices; ``host`` is the same memory as NumPy sees it."""

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
        """This memory seen in another way."""
        new = object.__new__(type(self))
        new._set(host, MemoryPointer(self.data.mem, host.__array_interface__["data"][0], self.data.device_id))
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
        assert self.data.device_id == other.data.device_id == _current[0]
        self.host += other.host
        return self

    def __isub__(self, other):
        assert self.data.device_id == other.data.device_id == _current[0]
        self.host -= other.host
        return self

    def copy(self):
        return array(self.host)

    def get(self):
        return self.host.copy()


def alloc(size):
    """Memory on the current device that holds what no result is."""
    memory = np.full(size + 512, POISON["ascending"], np.uint8)
    begin = -memory.__array_interface__["data"][0] % 512
    return _pointer_to(memory[begin : begin + size], _current[0])


def empty(shape, dtype=float):
    return ndarray(shape, dtype)


def zeros(shape, dtype=float):
    return array(np.zeros(shape, dtype))


def array(host, layout=np.ascontiguousarray):
    """A copy of a NumPy array, laid out in memory by a function of ``layouts``."""
    host = layout(np.array(host))
    new = object.__new__(ndarray)
    new._set(host, _pointer_to(host, _current[0]))
    return new


_current = [0]
#: Whether the current stream is being captured.
capturing = [False]


class Device:
    """A device, and the context in which it is the current one."""

    compute_capability = "90"
    attributes = {"MultiProcessorCount": 132, "MaxSharedMemoryPerBlockOptin": 227 << 10}  # noqa: RUF012

    def __init__(self, number=None):
        self.id = _current[0] if number is None else number

    def __enter__(self):
        self._before, _current[0] = _current[0], self.id
        return self

    def __exit__(self, *_):
        _current[0] = self._before


class Function:
    """A kernel, compiled by g++ and run by the simulator."""

    def __init__(self, code, name):
        self._name, self._start = name, load(code, name, is_sanitized())
        self.max_dynamic_shared_size_bytes = 48 << 10

    def __call__(self, grid, block, args, *, shared_mem=0):
        *pointers, arguments = args
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        assert arguments.size == 1
        addresses = []
        for pointer in pointers:
            pointer = getattr(pointer, "data", pointer)
            assert pointer.device_id == _current[0]
            addresses.append(pointer.ptr)
        launches.append(self._name)
        numbers = tuple(np.frombuffer(arguments.tobytes(), np.int64).tolist())
        launch = Launch("", (), self._name, grid, block, shared_mem, (), numbers)
        run_launch(self._start, launch, addresses, "random", len(launches))


class RawModule:
    def __init__(self, *, code, options=()):
        assert all(option.startswith("-") for option in options)
        self._code = code

    def compile(self):
        compiled.append(self._code)

    def get_function(self, name):
        return Function(self._code, name)


#: Names of the kernels that were launched, and texts that were compiled.
launches, compiled = [], []


def _module():
    """The module, as ``import cupy`` would find it."""
    cupy = ModuleType("cupy")
    cupy.__version__ = "14"
    properties = {"name": b"Imagined GPU", "totalGlobalMem": 80 << 30}
    stream = SimpleNamespace(is_capturing=lambda: capturing[0])
    cupy.cuda = SimpleNamespace(
        Device=Device,
        alloc=alloc,
        device=SimpleNamespace(get_device_id=lambda: _current[0]),
        get_current_stream=lambda: stream,
        runtime=SimpleNamespace(getDeviceCount=lambda: DEVICES, getDeviceProperties=lambda number: properties),
        nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
    )
    cupy.ndarray, cupy.empty, cupy.zeros, cupy.array, cupy.RawModule = ndarray, empty, zeros, array, RawModule
    return cupy


def install(monkeypatch):
    """Put it in the place of CuPy, and forget what was known of arrays that are no longer."""
    from convgrad_cy import calls
    from convgrad_cy.gpu import work

    for remembered in (work.device_of, work._module, work._function):
        remembered.cache_clear()
    monkeypatch.setattr(calls, "_KNOWN", {})
    launches.clear()
    compiled.clear()
    monkeypatch.setitem(sys.modules, "cupy", _module())
