"""Devices, streams and graphs of the stand-in for CuPy, and the current ones of each thread."""

import threading
from itertools import count
from weakref import WeakValueDictionary

from driver import RELAXED, Driver
from gpus import ATTRIBUTES


class _Process:
    """The state of one process. ``fake_cupy.install`` begins another."""

    driver = Driver()


process = _Process()


class _Here(threading.local):
    """The state of one thread: its current device, and its current stream of each device."""

    def __init__(self):
        self.device, self.streams = 0, {}


_here = _Here()


def current_device():
    return _here.device


class Device:
    """A device, and the context in which it is the current one."""

    compute_capability = "90"
    attributes = ATTRIBUTES[90]

    def __init__(self, number=None):
        self.id = _here.device if number is None else number

    def use(self):
        _here.device = self.id

    def __enter__(self):
        self._before, _here.device = _here.device, self.id
        return self

    def __exit__(self, *_):
        _here.device = self._before


class Stream:
    """A stream of the current device, and the context in which it is the current one."""

    _handles = count(1 << 10)
    of_handle = WeakValueDictionary()  # noqa: RUF012

    def __init__(self, null=False, non_blocking=False):
        self.ptr = 0 if null else next(self._handles)
        if not null:
            self.of_handle[self.ptr] = self
        self.non_blocking, self.device_id = non_blocking, _here.device

    def __enter__(self):
        self._before, _here.streams[self.device_id] = _here.streams.get(self.device_id), self
        return self

    def __exit__(self, *_):
        _here.streams[self.device_id] = self._before

    def begin_capture(self, mode=RELAXED):
        process.driver.begin_capture(self, mode)

    def end_capture(self):
        return Graph(process.driver.end_capture(self))

    def is_capturing(self):
        return process.driver.is_capturing(self)

    def synchronize(self):
        process.driver.check()


def external_stream(ptr, device_id):
    """``cupy.cuda.ExternalStream``: the stream with this handle, which must be of this device."""
    if ptr == 0:
        with Device(device_id):
            return Stream(null=True)
    stream = Stream.of_handle[ptr]
    assert stream.device_id == device_id, "a stream of another device"
    return stream


_LEGACY = Stream(null=True)


def get_current_stream():
    return _here.streams.get(_here.device) or _LEGACY


class Graph:
    """Captured launches, to be run at any time and any number of times."""

    def __init__(self, launches):
        self._launches = launches

    def launch(self, stream=None):
        for run in self._launches:
            process.driver.run(run)
