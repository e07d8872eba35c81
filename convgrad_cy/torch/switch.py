"""``enable()`` and ``disable()``: whether our kernels in PyTorch's dispatcher compute, or those that were there."""

import inspect
from contextlib import contextmanager
from typing import NamedTuple

import torch

from .. import cpu
from ..settings.algorithm import get_default_algorithm
from ..settings.wishes import Wishes
from . import plans
from .kernels import KERNELS, PASSED_ON, forget, previous

#: Some releases refuse a second kernel from Python unless they are told that one is meant.
_OVERRIDING = {"allow_override": True}
if "allow_override" not in inspect.signature(torch.library.Library.impl).parameters:
    _OVERRIDING = {}

_library = None  # from the first time on: it keeps the kernels registered


def _register():
    """Put our kernels above those that are there, once.

    They stay: to take a kernel away while another thread calls it ends the process.
    """
    global _library
    if _library is None:
        library = torch.library.Library("aten", "IMPL")
        for operator, kernel in KERNELS.items():
            kernel.previous = previous(operator)
            library.impl(operator, kernel, "CPU", **_OVERRIDING)
        _library = library


def _switch(wanted, algorithm):
    if algorithm != plans.algorithm:
        plans.algorithm = algorithm
        forget()
    if wanted:
        _register()
    for kernel in KERNELS.values():
        kernel.active = wanted


_wishes = Wishes(_switch)


def enable(algorithm=None):
    """Let convgrad_cy compute PyTorch's convolutions on the CPU, in this process, until `disable`.

    Holds for all threads, from the next call on: forward and backward, of models that exist already, too. Calling it
    again changes the algorithm at most. Other threads may compute meanwhile.

    The first switch of a process puts two kernels into PyTorch's dispatcher, where they stay. PyTorch does not promise
    that this is safe while another thread computes a convolution, so the first switch should come earlier. A kernel
    that another package puts there later lies above ours, and decides which calls reach ours.

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
    _wishes.add("enable", algorithm)


def disable():
    """Let PyTorch's own kernels compute again, whoever asked for ours.

    Holds for all threads, from the next call on. Other threads may compute meanwhile: a call that has begun here ends
    here. Our kernels stay in the dispatcher and pass each call on, which takes some microseconds.
    """
    _wishes.clear()


@contextmanager
def enabled(algorithm=None):
    """Let convgrad_cy compute PyTorch's convolutions on the CPU within a ``with`` block.

    Blocks may be nested, and several threads may be in one: it is the process that is switched, and the last one that
    leaves switches back, unless `enable` was called. Of several algorithms the one that was asked for last counts.
    Other threads may compute meanwhile, except at the first switch of a process: see `enable`.

    Parameters
    ----------
    algorithm : str, optional
        As of `enable`.
    """
    key = object()
    _wishes.add(key, algorithm)
    try:
        yield
    finally:
        _wishes.drop(key)


def is_enabled():
    """Whether convgrad_cy is to compute PyTorch's convolutions on the CPU now."""
    return bool(_wishes)


class Status(NamedTuple):
    """What `status` returns.

    Attributes
    ----------
    enabled : bool
        Whether calls are computed here now.
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
        (operator, reason) -> number of calls that went to PyTorch's own kernel while ours were enabled.
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
