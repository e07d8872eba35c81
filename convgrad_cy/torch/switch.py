"""``enable()`` and ``disable()``: the switch between our kernels in PyTorch's dispatcher and the earlier ones."""

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch

from .. import cpu
from .._aten import Untraced
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
_cuda = None  # the module with the kernels for CUDA, after the first request for them


def _register(key, kernels):
    """Register our kernels at a dispatch key above the present ones, once.

    They stay registered. Removing a kernel while another thread calls it would crash the process.
    """
    global _library
    library = _library or torch.library.Library("aten", "IMPL")
    for operator, kernel in kernels.items():
        kernel.previous = previous(operator, key)
        library.impl(operator, kernel if key == "CPU" else Untraced(kernel.__call__), key, **_OVERRIDING)
    _library = library


def _switch(wanted, algorithm=None, choices=False, cuda=False):
    global _cuda
    if (algorithm, choices) != (plans.algorithm, plans.choices):
        plans.algorithm, plans.choices = algorithm, choices
        forget()
    if wanted and _library is None:
        _register("CPU", KERNELS)
    for kernel in KERNELS.values():
        kernel.active = wanted
    if cuda and _cuda is None:
        from . import cuda as module

        _register("CUDA", module.KERNELS)
        _cuda = module
    if _cuda is not None:
        _cuda.switch(cuda)


def _checked(cuda):
    """The value of the argument ``cuda`` for a request, which is None for the default."""
    if cuda is False:
        return None
    from . import cuda as module

    return module.check(cuda)


_wishes = Wishes(_switch)


def enable(
    algorithm: Literal["auto", "direct"] | None = None,
    benchmark: bool | str | os.PathLike[str] | None = None,
    *,
    cuda: bool | Literal["all"] = False,
) -> None:
    """Let convgrad_cy compute PyTorch's convolutions on the CPU, in this process, until `disable`.

    It holds for all threads from the next call on, forward and backward, also in models that exist already. A second
    call replaces the arguments of the first one. Other threads may compute meanwhile.

    The first switch of a process puts two kernels into PyTorch's dispatcher, where they stay, and the first one with
    `cuda` two more. PyTorch does not promise that this is safe while another thread computes a convolution, so the
    first switch should come earlier. A kernel that another package puts there later lies above ours, and decides which
    calls reach ours.

    Parameters
    ----------
    algorithm : str, optional
        "auto" or "direct", as in the functions of this package. The default is the setting of
        `convgrad_cy.set_default_algorithm`.
    benchmark : bool, str or path, optional
        With True, our kernel and PyTorch's compute the first calls of each shape on a CPU in turn, and the faster one
        computes the later calls. Input gradients and filter gradients may have different owners. The path of a file
        keeps the choices there, for later runs, and also adds to them. By default our kernel computes every call that
        it supports.
    cuda : bool or str, optional
        With True, convgrad_cy also computes tensors on NVIDIA's GPUs. It takes the kinds of gradients that were timed
        and were faster than cuDNN, and PyTorch computes all others. "all" takes every call that the kernels support,
        for measurements.

    Raises
    ------
    OSError
        The file `benchmark` can neither be read nor made.
    TypeError
        `algorithm` is no string, or `benchmark` is neither a bool nor a path.
    ValueError
        `algorithm` is neither "auto" nor "direct", `benchmark` is a file of another kind, `cuda` is not False, True or
        "all", or PyTorch or CuPy is for ROCm.
    ImportError
        `cuda` is not False, and CuPy is not installed.

    See Also
    --------
    enabled : Switch it on for a block of code.
    """
    _wishes.add("enable", algorithm, choices=opened(benchmark), cuda=_checked(cuda))


def disable() -> None:
    """Let PyTorch's own kernels compute again. It ends all open `enable` and `enabled` calls.

    It holds for all threads from the next call on. Other threads may compute meanwhile: a call that has begun here ends
    here. Our kernels stay in the dispatcher and pass each call on, which takes some microseconds.
    """
    _wishes.clear()


@contextmanager
def enabled(
    algorithm: Literal["auto", "direct"] | None = None,
    benchmark: bool | str | os.PathLike[str] | None = None,
    *,
    cuda: bool | Literal["all"] = False,
) -> Iterator[None]:
    """Let convgrad_cy compute PyTorch's convolutions on the CPU within a ``with`` block.

    Blocks may be nested, and several threads may be in blocks: a block switches the whole process, and the last one
    that ends switches back, unless `enable` was called. If several algorithms are asked for, the last one counts. This
    also holds for `benchmark`, and for a `cuda` that is not False. Other threads may compute meanwhile, except at the
    first switch of a process: see `enable`.

    Parameters
    ----------
    algorithm : str, optional
        The same as for `enable`.
    benchmark : bool, str or path, optional
        The same as for `enable`. False measures nothing within the block.
    cuda : bool or str, optional
        The same as for `enable`.

    Yields
    ------
    None
        PyTorch's convolutions are computed here until the block ends.
    """
    key = object()
    _wishes.add(key, algorithm, choices=opened(benchmark), cuda=_checked(cuda))
    try:
        yield
    finally:
        _wishes.drop(key)


def is_enabled() -> bool:
    """Whether convgrad_cy computes PyTorch's convolutions now.

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
        Operator -> number of calls that were computed here. After the first ``enable(cuda=True)``, "_convolution on
        CUDA" and "convolution_backward on CUDA" count the calls on GPUs.
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
        {operator: kernel.computed for operator, kernel in KERNELS.items()} | (_cuda.computed() if _cuda else {}),
        dict(PASSED_ON),
        plans.choices.summary() if plans.choices else None,
    )
