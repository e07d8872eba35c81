"""``enable()`` and ``disable()``: the switch between our kernels in PyTorch's dispatcher and the earlier ones."""

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch

from .. import cpu
from ..settings.algorithm import get_default_algorithm
from ..settings.wishes import Wishes
from . import plans
from .choices import Benchmark, opened
from .kernels import KERNELS, PASSED_ON, forget, previous

#: Some releases refuse a second kernel from Python unless this option is set.
_OVERRIDING = {"allow_override": True}
if "allow_override" not in inspect.signature(torch.library.Library.impl).parameters:
    _OVERRIDING = {}

_library = None  # set once: it keeps the kernels registered


def _register():
    """Register our kernels above the present ones, once.

    They stay registered. Removing a kernel while another thread calls it would crash the process.
    """
    global _library
    if _library is None:
        library = torch.library.Library("aten", "IMPL")
        for operator, kernel in KERNELS.items():
            kernel.previous = previous(operator)
            library.impl(operator, kernel, "CPU", **_OVERRIDING)
        _library = library


def _switch(wanted, algorithm=None, choices=False):
    if (algorithm, choices) != (plans.algorithm, plans.choices):
        plans.algorithm, plans.choices = algorithm, choices
        forget()
    if wanted:
        _register()
    for kernel in KERNELS.values():
        kernel.active = wanted


_wishes = Wishes(_switch)


def enable(
    algorithm: Literal["auto", "direct"] | None = None, benchmark: bool | str | os.PathLike[str] | None = None
) -> None:
    """Let convgrad_cy compute PyTorch's convolutions on the CPU, in this process, until `disable`.

    It holds for all threads from the next call on, forward and backward, also in models that exist already. A second
    call replaces the settings of the first. Other threads may compute meanwhile.

    The first switch of a process puts two kernels into PyTorch's dispatcher, where they stay. PyTorch does not promise
    that this is safe while another thread computes a convolution, so the first switch should come earlier. A kernel
    that another package puts there later lies above ours, and decides which calls reach ours.

    Parameters
    ----------
    algorithm : str, optional
        "auto" or "direct", as in the functions of this package. The default is the setting of
        `convgrad_cy.set_default_algorithm`.
    benchmark : bool, str or path, optional
        With True, our kernel and PyTorch's compute the first calls of each shape in turn, and the faster one computes
        the later calls. Input gradients and filter gradients may have different owners. The path of a file keeps the
        choices there, for later runs, and also adds to them. By default our kernel computes every call that it
        supports.

    Raises
    ------
    OSError
        The file `benchmark` can neither be read nor made.
    TypeError
        `algorithm` is no string, or `benchmark` is neither a bool nor a path.
    ValueError
        `algorithm` is neither "auto" nor "direct", or `benchmark` is a file of another kind.

    See Also
    --------
    enabled : Switch it on for a block of code.
    """
    _wishes.add("enable", algorithm, choices=opened(benchmark))


def disable() -> None:
    """Let PyTorch's own kernels compute again. It ends all open `enable` and `enabled` calls.

    It holds for all threads from the next call on. Other threads may compute meanwhile: a call that has begun here ends
    here. Our kernels stay in the dispatcher and pass each call on, which takes some microseconds.
    """
    _wishes.clear()


@contextmanager
def enabled(
    algorithm: Literal["auto", "direct"] | None = None, benchmark: bool | str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Let convgrad_cy compute PyTorch's convolutions on the CPU within a ``with`` block.

    Blocks may be nested, and several threads may be in blocks: a block switches the whole process, and the last one
    that ends switches back, unless `enable` was called. If several algorithms are asked for, the last one counts.
    This also holds for `benchmark`. Other threads may compute meanwhile, except at the first switch of a process: see
    `enable`.

    Parameters
    ----------
    algorithm : str, optional
        The same as for `enable`.
    benchmark : bool, str or path, optional
        The same as for `enable`. False measures nothing within the block.

    Yields
    ------
    None
        PyTorch's convolutions are computed here until the block ends.
    """
    key = object()
    _wishes.add(key, algorithm, choices=opened(benchmark))
    try:
        yield
    finally:
        _wishes.drop(key)


def is_enabled() -> bool:
    """Whether convgrad_cy computes PyTorch's convolutions on the CPU now.

    Returns
    -------
    bool
        True after `enable` and within a block of `enabled`.
    """
    return bool(_wishes)


class Status(NamedTuple):
    """The result of `status`.

    Attributes
    ----------
    enabled : bool
        Whether calls are computed here now.
    torch : str
        Version of PyTorch.
    isa : str
        Instruction set of the kernels.
    algorithm : str
        Algorithm of the next call.
    threads : int
        Number of threads that a large call would use now: ``torch.get_num_threads()``.
    computed : dict
        Operator -> number of calls that were computed here.
    passed_on : dict
        (operator, reason) -> number of calls that went to PyTorch's own kernel while ours were enabled.
    benchmark : Benchmark or None
        The choices of ``enable(benchmark=...)``, None without it.
    """

    enabled: bool
    torch: str
    isa: str
    algorithm: str
    threads: int
    computed: dict[str, int]
    passed_on: dict[tuple[str, str], int]
    benchmark: Benchmark | None


def status() -> Status:
    """Whether it is switched on, and where calls of all threads were computed since the import.

    Returns
    -------
    Status
        The switch, the settings of the next convolution, and the counts.
    """
    return Status(
        is_enabled(),
        torch.__version__,
        cpu.isa,
        plans.algorithm or get_default_algorithm(),
        torch.get_num_threads(),
        {operator: kernel.computed for operator, kernel in KERNELS.items()},
        dict(PASSED_ON),
        plans.choices.summary() if plans.choices else None,
    )
