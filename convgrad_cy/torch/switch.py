"""``enable()`` and ``disable()``: our kernels in PyTorch's dispatcher, above those that were there."""

import inspect
from contextlib import contextmanager
from threading import RLock
from typing import NamedTuple

import torch

from .. import cpu
from ..default_algorithm import DEFAULTS, get_default_algorithm
from ..keywords import choice
from . import plans
from .kernels import KERNELS, PASSED_ON, PREVIOUS, forget

#: Some releases refuse a second kernel from Python unless they are told that one is meant.
_OVERRIDING = {"allow_override": True}
if "allow_override" not in inspect.signature(torch.library.Library.impl).parameters:
    _OVERRIDING = {}

_lock = RLock()
_library = None  # while enabled: it keeps the kernels registered
#: Who wants them, and the algorithm that each asks for: "enable", and one object for each open `with enabled()`.
_wishes = {}


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


def _checked(algorithm):
    return None if algorithm is None else choice(algorithm, "algorithm", DEFAULTS)


def _choose():
    """The algorithm that was asked for last and still is."""
    chosen = next((algorithm for algorithm in reversed(_wishes.values()) if algorithm is not None), None)
    if chosen != plans.algorithm:
        plans.algorithm = chosen
        forget()


def enable(algorithm=None):
    """Let convgrad_cy compute PyTorch's convolutions on the CPU, in this process, until `disable`.

    Holds for all threads, from the next call on: forward and backward, of models that exist already, too. Calling it
    again changes the algorithm at most.

    Parameters
    ----------
    algorithm : str, optional
        "auto" or "direct", as in the functions of this package; by default what
        `convgrad_cy.set_default_algorithm` says.

    Raises
    ------
    TypeError
        An `algorithm` that is no string.
    ValueError
        An `algorithm` that is neither of the two.

    See Also
    --------
    enabled : the same for a block of code.
    """
    algorithm = _checked(algorithm)
    with _lock:
        _wishes.pop("enable", None)
        _wishes["enable"] = algorithm
        _choose()
        _register()


def disable():
    """Give PyTorch back the kernels that it had, whoever asked for ours.

    What another package has registered in the meantime stays.
    """
    with _lock:
        _wishes.clear()
        _choose()
        _unregister()


@contextmanager
def enabled(algorithm=None):
    """Let convgrad_cy compute PyTorch's convolutions on the CPU within a ``with`` block.

    Blocks may be nested, and several threads may be in one: it is the process that is switched, and the last one that
    leaves switches back, unless `enable` was called. Of several algorithms the one that was asked for last counts.

    Parameters
    ----------
    algorithm : str, optional
        As of `enable`.
    """
    algorithm = _checked(algorithm)
    wish = object()
    with _lock:
        _wishes[wish] = algorithm
        _choose()
        _register()
    try:
        yield
    finally:
        with _lock:
            _wishes.pop(wish, None)
            _choose()
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
    algorithm : str
        That of the next call.
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
    algorithm: str
    threads: int
    computed: dict
    passed_on: dict


def status():
    """What is switched on, and what has been computed where since the import, in all threads."""
    return Status(
        is_enabled(),
        torch.__version__,
        cpu.isa,
        plans.algorithm or get_default_algorithm(),
        torch.get_num_threads(),
        {operator: kernel.computed for operator, kernel in KERNELS.items()},
        dict(PASSED_ON),
    )
