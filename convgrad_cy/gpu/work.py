"""Plans carried out by CuPy: kernels compiled when they are first needed, launched on CuPy's current stream."""

from functools import cache
from itertools import accumulate

import numpy as np

from .joined import joined
from .module import text
from .plan import Device

_OPTIONS = ("-std=c++17",)

#: More dynamic shared memory than this has to be asked for.
_SHARED_UNASKED = 48 << 10

#: Workspaces of a call are one allocation; each begins at a multiple of this.
_SPACE = 512


@cache
def device_of(number):
    """What a plan has to know of a GPU."""
    import cupy

    device = cupy.cuda.Device(number)
    attributes = device.attributes
    return Device(
        int(device.compute_capability), attributes["MultiProcessorCount"], attributes["MaxSharedMemoryPerBlockOptin"]
    )


def _is_without_compiler(error):
    """Whether CuPy could not begin to compile: it found no CUDA headers or no NVRTC."""
    return "CUDA headers" in str(error) or type(error).__name__ == "DynamicLibNotFoundError"


@cache
def _module(source, macros, device):
    """The compiled text on the current device. What NVRTC made of it is in CuPy's cache on disk, too."""
    import cupy

    module = cupy.RawModule(code=text(source, macros), options=_OPTIONS)
    try:
        module.compile()
    except RuntimeError as error:
        if not _is_without_compiler(error):
            raise
        needed = "CuPy must be able to compile CUDA code, for which it needs NVRTC and headers"
        raise ImportError(f"{needed}: pip install 'convgrad_cy[cuda13]' (CuPy says: {error})") from error
    return module


@cache
def _function(source, macros, kernel, device):
    return _module(source, macros, device).get_function(kernel)


class Work:
    """The launches of a call, for arrays that lie in memory in a certain way, on one device.

    ``parts`` are pairs of a plan and the numbers of its source, filter and target among the call's arrays.
    """

    def __init__(self, parts, arrays, device):
        import cupy

        plan = joined(parts, arrays)
        self._cupy, self._device = cupy, device
        *self._offsets, self._size = accumulate((-(-size // _SPACE) * _SPACE for size in plan.workspaces), initial=0)
        self._captured = []
        with cupy.cuda.Device(device):
            self._launches = [self._prepared(launch) for launch in plan.launches]

    def _prepared(self, launch):
        function = _function(launch.source, launch.macros, launch.kernel, self._device)
        if launch.shared > max(_SHARED_UNASKED, function.max_dynamic_shared_size_bytes):
            function.max_dynamic_shared_size_bytes = launch.shared
        # CuPy passes an array of one element by value, as the struct that the kernel takes.
        arguments = np.array(launch.arguments, np.int64).view(f"V{8 * len(launch.arguments)}")
        return function, launch.grid, launch.block, launch.pointers, arguments, launch.shared

    def run(self, *arrays):
        """Write the results, on CuPy's current stream of the arrays' device."""
        if self._cupy.cuda.device.get_device_id() == self._device:
            self._launch(arrays)
        else:
            with self._cupy.cuda.Device(self._device):
                self._launch(arrays)

    def _launch(self, arrays):
        if self._size:
            arrays = (*arrays, *self._workspaces())
        for function, grid, block, pointers, arguments, shared in self._launches:
            function(grid, block, (*[arrays[number] for number in pointers], arguments), shared_mem=shared)

    def _workspaces(self):
        """Memory from CuPy's pool, which may hand it out again to later work of the same stream."""
        cuda = self._cupy.cuda
        memory = cuda.alloc(self._size)
        if cuda.get_current_stream().is_capturing():
            self._captured.append(memory)  # a graph uses it whenever it is launched
        return [memory + offset for offset in self._offsets]
