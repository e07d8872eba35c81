"""``enable()`` and ``disable()``: our kernels in PyTorch's dispatcher, above those that were there."""

import inspect
from contextlib import contextmanager
from threading import RLock
from typing import NamedTuple

import torch

from .. import cpu
from .kernels import KERNELS, PASSED_ON, PREVIOUS

#: Some releases refuse a second kernel from Python unless they are told that one is meant.
_OVERRIDING = {"allow_override": True}
if "allow_override" not in inspect.signature(torch.library.Library.impl).parameters:
    _OVERRIDING = {}

_lock = RLock()
_library = None  # while enabled: it keeps the kernels registered
_wishes = set()  # who wants them: "enable", and one object for each `with enabled()` that is open


def _register():
    global _library
    if _library is None:
        library = torch.library.Library("aten", "IMPL")
        for operator, kernel in KERNELS.items():
            PREVIOUS[operator] = torch.library.get_kernel(f"aten::{operator}", "CPU")
            library.impl(operator, kernel, "CPU", **_OVERRIDING)
        _library = library


def _unregister():
    global _library
    if _library is not None:
        _library._destroy()
        _library = None


def enable():
    """Let convgrad_cy compute PyTorch's convolutions on the CPU, in this process, until `disable`.

    Holds for all threads, from the next call on: forward and backward, of models that exist already, too. Calling it
    again changes nothing.

    See Also
    --------
    enabled : the same for a block of code.
    """
    with _lock:
        _wishes.add("enable")
        _register()


def disable():
    """Give PyTorch back the kernels that it had, whoever asked for ours.

    What another package has registered in the meantime stays.
    """
    with _lock:
        _wishes.clear()
        _unregister()


@contextmanager
def enabled():
    """Let convgrad_cy compute PyTorch's convolutions on the CPU within a ``with`` block.

    Blocks may be nested, and several threads may be in one: it is the process that is switched, and the last one that
    leaves switches back, unless `enable` was called.
    """
    wish = object()
    with _lock:
        _wishes.add(wish)
        _register()
    try:
        yield
    finally:
        with _lock:
            _wishes.discard(wish)
            if not _wishes:
                _unregister()


def is_enabled():
    """Whether convgrad_cy computes PyTorch's convolutions on the CPU now."""
    return _library is not None


class Status(NamedTuple):
    """What `status` returns.

    Attributes
    ----------
    enabled : bool
        Whether the kernels are in place now.
    torch : str
        Version of PyTorch.
    isa : str
        Instruction set of the kernels.
    threads : int
        Threads that a large call would use now: those of ``torch.get_num_threads()``.
    computed : dict
        Operator -> number of calls that were computed here.
    passed_on : dict
        (operator, reason) -> number of calls that went to PyTorch's own kernel.
    """

    enabled: bool
    torch: str
    isa: str
    threads: int
    computed: dict
    passed_on: dict


def status():
    """What is switched on, and what has been computed where since the import, in all threads."""
    return Status(
        is_enabled(),
        torch.__version__,
        cpu.isa,
        torch.get_num_threads(),
        {operator: kernel.computed for operator, kernel in KERNELS.items()},
        dict(PASSED_ON),
    )
