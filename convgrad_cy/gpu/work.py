"""The executor of plans: it compiles kernels when they are first needed, and launches them on CuPy's current stream."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import accumulate

import numpy as np

from ..memo.bounded import count
from ..memo.locks import ForkSafeLock
from . import compiler, cubins
from .joined import joined
from .module import text
from .plan import Device
from .tensor_map import BYTES, Encoder, can_encode

#: Shared memory of a block above which a kernel must request its dynamic part, however small that is.
_SHARED_UNASKED = 48 << 10

#: Held while a function's limit is read and raised. All works that launch the function share the limit.
_LIMIT = ForkSafeLock()

#: Handles of the legacy stream. No graph is captured from it, and queries of it fail during a capture elsewhere.
_LEGACY_STREAM = (0, 1)

#: (source, macros, device) -> compiled module.
_MODULES = {}

#: Workspaces of captured calls. Each launch of a graph uses them, and nothing tells when the graph is destroyed.
_CAPTURED = []

#: Bytes of a launch in Python, without its arguments.
_LAUNCH_BYTES = 1 << 10

#: Number of address sets for which a launch keeps its tensor maps. Equal layers of a network share the launch.
_MOST_ENCODED = 64

#: The architecture whose warpgroups and TMA are used, and the oldest NVRTC that is known to compile these kernels.
_GROUPED_ARCH, _GROUPED_NVRTC = 90, (12, 4)

#: Workspaces of a call are one allocation; each begins at a multiple of this.
_SPACE = 512


@cache
def device_of(number):
    """The `Device` with this number."""
    import cupy

    device = cupy.cuda.Device(number)
    return described(int(device.compute_capability), device.attributes, _nvrtc(), can_encode())


def _nvrtc():
    """The version of NVRTC; (0, 0) if there is none, which the first compilation reports."""
    try:
        return compiler.version()
    except ImportError:
        return 0, 0


def described(arch, attributes, nvrtc, encodes):
    """The `Device` of this architecture with CuPy's ``attributes``.

    ``nvrtc`` is the version of NVRTC. ``encodes`` says whether the driver makes tensor maps.
    """
    grouped = arch == _GROUPED_ARCH and nvrtc >= _GROUPED_NVRTC
    return Device(
        arch,
        attributes["MultiProcessorCount"],
        attributes["MaxSharedMemoryPerBlockOptin"],
        _memory_bytes(attributes),
        grouped,
        grouped and encodes,
    )


def _memory_bytes(attributes):
    """Bytes of memory traffic per clock and multiprocessor, or None if the driver does not tell.

    Both clocks are the maximal ones. Copies reach about 90 % of the memory's rate, and the multiprocessors run at about
    90 % of their clock under load. Both errors cancel, so neither is corrected.
    """
    names = ("MemoryClockRate", "GlobalMemoryBusWidth", "ClockRate")
    memory_clock, width, clock = (attributes.get(name, 0) for name in names)
    if min(memory_clock, width, clock) <= 0:
        return None
    return 2 * memory_clock * (width / 8) / clock / attributes["MultiProcessorCount"]  # two transfers in a clock


def _compiled(key):
    """The module of a text, compiled or found in the folder of cubins, and loaded on the current device."""
    import cupy

    source, macros, device = key
    path = cubins.path_of(text(source, macros), compiler.options_of(device_of(device).arch, macros))
    module = cupy.RawModule(path=str(path))
    module.compile()  # loads the file
    return module


def _compile(launches, device):
    """Compile the missing modules of the launches on the current device, which is ``device``.

    CuPy lets other threads run while NVRTC works, so several texts take about as long as the longest of them.
    """
    import cupy

    keys = dict.fromkeys((launch.source, launch.macros, device) for launch in launches)
    missing = [key for key in keys if key not in _MODULES]
    if len(missing) > 1:
        threads = min(len(missing), os.cpu_count() or 1)
        with ThreadPoolExecutor(threads, initializer=cupy.cuda.Device(device).use) as pool:
            modules = list(pool.map(_compiled, missing))
    else:
        modules = list(map(_compiled, missing))
    _MODULES.update(zip(missing, modules, strict=True))


@cache
def _function(source, macros, kernel, device):
    """A kernel of a compiled module."""
    return _MODULES[source, macros, device].get_function(kernel)


def _ask_for_shared(function, size):
    """Allow a function ``size`` bytes of dynamic shared memory, if a block needs more in total than the default.

    A limit that was never set reads 48 KB, but the static part counts, too. So the limit is set even to the value that
    it reads. Such large blocks share a multiprocessor only if it uses its whole capacity as shared memory.
    """
    if size + function.shared_size_bytes > _SHARED_UNASKED:
        with _LIMIT.held:
            function.max_dynamic_shared_size_bytes = max(size, function.max_dynamic_shared_size_bytes)
        function.preferred_shared_memory_carveout = 100


def _address(pointer):
    """The address of an array or of memory from CuPy's pool. An address is a number already."""
    return pointer if type(pointer) is int else getattr(pointer, "data", pointer).ptr


def _encoder(maps):
    """Return a function from a launch's addresses to its tensor maps, which keeps its latest results."""
    return lru_cache(_MOST_ENCODED)(Encoder(maps)) if maps else None


def _is_captured(stream):
    """Whether a graph is being captured from this stream."""
    return stream.ptr not in _LEGACY_STREAM and stream.is_capturing()


def release_captured():
    """Free the workspaces of all captured calls. The caller has destroyed all graphs."""
    _CAPTURED.clear()


class Work:
    """The launches of a call on one device, for arrays of one layout and alignment.

    ``parts`` are pairs of a plan and the numbers of its source, filter and target among the call's arrays. ``size`` is
    the number of bytes of all workspaces.
    """

    def __init__(self, parts, arrays, device):
        import cupy

        plan = joined(parts, arrays)
        self._cupy, self._device = cupy, device
        *self._offsets, self.size = accumulate((-(-size // _SPACE) * _SPACE for size in plan.workspaces), initial=0)
        with cupy.cuda.Device(device):
            _compile(plan.launches, device)
            self._launches = [self._prepared(launch) for launch in plan.launches]
        numbers = sum(8 * len(launch.arguments) + _MOST_ENCODED * BYTES * len(launch.maps) for launch in plan.launches)
        count(_LAUNCH_BYTES * len(plan.launches) + numbers)

    def _prepared(self, launch):
        function = _function(launch.source, launch.macros, launch.kernel, self._device)
        _ask_for_shared(function, launch.shared)
        # CuPy passes an array of one element by value, as the struct that the kernel expects.
        arguments = np.array(launch.arguments, np.int64).view(f"V{8 * len(launch.arguments)}")
        return function, launch.grid, launch.block, launch.pointers, _encoder(launch.maps), arguments, launch.shared

    def run(self, *arrays):
        """Write the results on CuPy's current stream of the arrays' device."""
        if self._cupy.cuda.device.get_device_id() == self._device:
            self._launch((*arrays, *self._workspaces()))
        else:
            with self._cupy.cuda.Device(self._device):
                self._launch((*arrays, *self._workspaces()))

    def run_at(self, addresses, workspace, stream):
        """Write the results of the arrays at these addresses on the stream with the handle ``stream``.

        ``workspace`` is the address of ``size`` bytes. It is a multiple of ALIGNMENT. Nothing is allocated here.
        """
        cuda = self._cupy.cuda
        with cuda.Device(self._device), cuda.ExternalStream(stream, self._device):
            self._launch((*addresses, *(workspace + offset for offset in self._offsets)))

    def _launch(self, arrays):
        for function, grid, block, numbers, maps_of, arguments, shared in self._launches:
            pointers = [arrays[number] for number in numbers]
            by_value = (maps_of(*map(_address, pointers)), arguments) if maps_of else (arguments,)
            function(grid, block, (*pointers, *by_value), shared_mem=shared)

    def _workspaces(self):
        """Memory from CuPy's pool, which may reuse it for later work of the same stream."""
        if not self.size:
            return ()
        cuda = self._cupy.cuda
        memory = cuda.alloc(self.size)
        if _is_captured(cuda.get_current_stream()):
            _CAPTURED.append(memory)
        return [memory + offset for offset in self._offsets]
