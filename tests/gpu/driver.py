"""A model of the CUDA driver's refusals: launches, memory, captured streams, and all calls after a wrong kernel.

The rules come from the CUDA Programming Guide (compute capabilities, graphs), from the driver's functions
cuFuncSetAttribute, cuLaunchKernel and cuStreamBeginCapture, and from CuPy's memory pool.
"""

from collections import defaultdict
from math import prod
from typing import NamedTuple

import numpy as np
from sim.executor import SimulationError, check_launch

#: Shared memory, static and dynamic, that a block has without a request.
UNASKED = 48 << 10
#: Registers of a block; a warp takes them in portions.
REGISTERS, PORTION = 65536, 256
#: Bytes of a kernel's parameters.
PARAMETERS = 4096
#: Memory is allocated in multiples of this, and begins at one.
SPACE = 512
#: Modes of a capture, as CuPy numbers them.
GLOBAL, THREAD_LOCAL, RELAXED = range(3)


class DriverError(RuntimeError):
    """An error of CUDA, with its name."""

    def __init__(self, name, reason):
        super().__init__(f"{name}: {reason}")
        self.name = name


def _refuse(reason, name="CUDA_ERROR_INVALID_VALUE"):
    raise DriverError(name, reason)


class Capture:
    """The calls on a stream while a graph is made of it."""

    def __init__(self, mode):
        self.mode, self.launches, self.is_valid = mode, [], True


class Memory:
    """Some bytes of a device. Unused bytes become free for the stream that they were taken on."""

    def __init__(self, block, arena):
        self.block, self._arena = block, arena

    def __del__(self):
        self._arena.append(self.block)


class Driver:
    """The state of a process. Streams have a ``ptr``, 0 for the legacy one, and may be ``non_blocking``."""

    def __init__(self):
        self._lost = None
        self._captures = {}  # by stream
        self._arenas = defaultdict(list)  # free blocks by device and stream
        self._placed = []  # (block, device) of memory that another library allocated

    def check(self):
        """Begin a call: after a wrong kernel, no call succeeds any more."""
        if self._lost is not None:
            raise DriverError(*self._lost)

    def lose(self, name, reason):
        """Make all further calls of this process fail, as an error of a kernel does."""
        self._lost = name, reason
        raise DriverError(name, reason)

    # ---- graphs ----

    def begin_capture(self, stream, mode):
        self.check()
        if stream.ptr == 0:
            _refuse("the legacy stream cannot be captured", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
        self._captures[stream] = Capture(mode)

    def end_capture(self, stream):
        """The captured launches."""
        self.check()
        capture = self._captures.pop(stream)
        if not capture.is_valid:
            _refuse("something was done meanwhile that may not be", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")
        return capture.launches

    def is_capturing(self, stream):
        self.check()
        self._check_legacy(stream)
        return stream in self._captures

    def _check_legacy(self, stream):
        """Refuse the legacy stream while another one is captured: it waits for all but the non-blocking ones."""
        if stream.ptr == 0 and any(not captured.non_blocking for captured in self._captures):
            _refuse("the legacy stream depends on one that is captured", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT")

    def check_safe(self, what):
        """Refuse a call that may wait for the device while a captured stream forbids it. The stream's graph is lost."""
        self.check()
        forbidding = [capture for capture in self._captures.values() if capture.mode != RELAXED]
        for capture in forbidding:
            capture.is_valid = False
        if forbidding:
            _refuse(f"{what} while a stream is captured", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")

    # ---- memory ----

    def allocate(self, size, device, stream):
        """Memory from the pool. The pool asks for more if the stream has left nothing large enough."""
        self.check()
        size = max(-(-size // SPACE), 1) * SPACE
        arena = self._arenas[device, stream.ptr]
        fitting = [i for i, block in enumerate(arena) if block.size >= size]
        if fitting:
            return Memory(arena.pop(min(fitting, key=lambda i: arena[i].size)), arena)
        self.check_safe("new memory")
        memory = np.empty(size + SPACE, np.uint8)
        begin = -memory.__array_interface__["data"][0] % SPACE
        return Memory(memory[begin : begin + size], arena)

    def place(self, block, device):
        """Let a device have the memory of another library's allocator."""
        self._placed.append((block, device))

    def device_at(self, address):
        """The device of an address in memory of another library, which must be there."""
        for block, device in self._placed:
            begin = block.__array_interface__["data"][0]
            if begin <= address < begin + block.nbytes:
                return device
        self.lose("CUDA_ERROR_ILLEGAL_ADDRESS", f"no memory is at {address}")

    # ---- launches ----

    def launch(self, stream, run):
        """Run a correct launch, or keep it for the graph that is made of the stream."""
        self.check()
        self._check_legacy(stream)
        if stream in self._captures:
            self._captures[stream].launches.append(run)
        else:
            self.run(run)

    def run(self, run):
        """Carry out a launch. The simulator's errors count as errors of the kernel."""
        self.check()
        try:
            run()
        except SimulationError as error:
            self.lose("CUDA_ERROR_LAUNCH_FAILED", error)


class Attributes(NamedTuple):
    """The needs of a compiled kernel, as cuFuncGetAttribute reports them."""

    shared: int  # bytes of static shared memory
    registers: int  # for each thread
    threads: int  # the most of a block


def most_registers(threads):
    """The most registers that the compiler may give each of ``threads`` threads of a block."""
    return min(255, REGISTERS // (-(-threads // 32) * 32) // 8 * 8)


class Kernel:
    """A kernel on one device, with CuPy's names for its attributes and requests."""

    def __init__(self, driver, device, attributes):
        self._driver, self._device = driver, device
        self._attributes = attributes
        self._asked, self._carveout = None, -1

    @property
    def shared_size_bytes(self):
        self._driver.check()
        return self._attributes.shared

    @property
    def num_regs(self):
        self._driver.check()
        return self._attributes.registers

    @property
    def max_threads_per_block(self):
        self._driver.check()
        return self._attributes.threads

    @property
    def max_dynamic_shared_size_bytes(self):
        """Without a request, a block's limit without static shared memory, which is more than this kernel has."""
        self._driver.check()
        return UNASKED if self._asked is None else self._asked

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size):
        self._driver.check()
        static, most = self._attributes.shared, self._device.attributes["MaxSharedMemoryPerBlockOptin"]
        if static + size > most:
            _refuse(f"{static} + {size} bytes of shared memory are asked for, a block has at most {most}")
        self._asked = size

    @property
    def preferred_shared_memory_carveout(self):
        self._driver.check()
        return self._carveout

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, percent):
        self._driver.check()
        if not -1 <= percent <= 100:
            _refuse(f"a carve-out is -1 or a percentage, not {percent}")
        self._carveout = percent

    def check_launch(self, launch, device, parameters):
        """Refuse a launch on ``device`` with ``parameters`` bytes of parameters if the driver would refuse it."""
        self._driver.check()
        if device.id != self._device.id:
            _refuse(f"{launch.kernel} is on device {self._device.id}, not {device.id}", "CUDA_ERROR_INVALID_HANDLE")
        try:
            check_launch(launch)
        except SimulationError as error:
            _refuse(error)
        self._check_shared(launch)
        threads, (_, registers, most) = prod(launch.block), self._attributes
        if threads > most:
            _refuse(f"{launch.kernel} is for {most} threads, not {threads}")
        taken = -(-threads // 32) * (-(-registers * 32 // PORTION) * PORTION)
        if taken > REGISTERS:
            _refuse(f"{launch.kernel}: {taken} registers in a block", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
        if parameters > PARAMETERS:
            _refuse(f"{launch.kernel}: {parameters} bytes of parameters")

    def _check_shared(self, launch):
        static = self._attributes.shared
        most = UNASKED - static if self._asked is None else self._asked
        if launch.shared > most:
            _refuse(
                f"{launch.kernel}: {launch.shared} bytes of dynamic shared memory in addition to {static} static ones, "
                f"where {most} are allowed"
            )
