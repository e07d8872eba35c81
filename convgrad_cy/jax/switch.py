"""``enable()`` and ``disable()``: our lowering rule in JAX, or JAX's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import jax

from .. import cpu
from .._xla_ffi import computed
from ..settings.algorithm import get_default_algorithm
from ..settings.threads import get_num_threads
from ..settings.wishes import Wishes
from . import lowering

#: The rule that ours has replaced and the algorithm of ours, or None while JAX's own rule is in place.
_state = None


def _switch(wanted, algorithm=None):
    global _state
    if not wanted:
        if _state is not None:
            lowering.register(_state[0])
            _state = None
    elif _state is None or _state[1] != algorithm:
        fallback = lowering.rule_of_jax() if _state is None else _state[0]
        _state = fallback, algorithm
        lowering.register(lowering.rule(algorithm, fallback))


_wishes = Wishes(_switch)


def enable(algorithm: Literal["auto", "direct"] | None = None) -> None:
    """Let convgrad_cy compute JAX's convolutions on the CPU, in this process, until `disable`.

    It holds for all threads and for every function that is compiled from now on. Functions that were jitted before are
    compiled again at their next call. A second call changes the algorithm at most.

    Parameters
    ----------
    algorithm : str, optional
        "auto" or "direct", as in the functions of this package. By default the algorithm that
        `convgrad_cy.set_default_algorithm` has set when the convolution is computed.

    Raises
    ------
    TypeError
        `algorithm` is no string.
    ValueError
        `algorithm` is neither "auto" nor "direct".

    See Also
    --------
    enabled : Switch it on for a block of code.
    """
    _wishes.add("enable", algorithm)


def disable() -> None:
    """Give JAX its own rule back. It ends all open `enable` and `enabled` calls.

    Functions that were jitted are compiled again at their next call.
    """
    _wishes.clear()


@contextmanager
def enabled(algorithm: Literal["auto", "direct"] | None = None) -> Iterator[None]:
    """Let convgrad_cy compute JAX's convolutions on the CPU within a ``with`` block.

    Blocks may be nested, and several threads may be in blocks: a block switches the whole process, and the last one
    that ends switches back, unless `enable` was called. If several algorithms are asked for, the last one counts.

    Parameters
    ----------
    algorithm : str, optional
        The same as for `enable`.

    Yields
    ------
    None
        JAX's convolutions are computed here until the block ends.
    """
    key = object()
    _wishes.add(key, algorithm)
    try:
        yield
    finally:
        _wishes.drop(key)


def is_enabled() -> bool:
    """Whether convgrad_cy computes JAX's convolutions on the CPU now.

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
        Whether our rule is in place now.
    jax : str
        Version of JAX.
    isa : str
        Instruction set of the kernels.
    algorithm : str
        Algorithm of the next convolution.
    threads : int
        Threads of a large convolution: `convgrad_cy.get_num_threads`.
    computed : int
        Convolutions that our kernels have computed, each time a program ran.
    lowered : dict
        Function -> number of convolutions that were compiled to it. JAX compiles equal ones of a program once.
    passed_on : dict
        Reason -> number of convolutions that were compiled by XLA instead.
    """

    enabled: bool
    jax: str
    isa: str
    algorithm: str
    threads: int
    computed: int
    lowered: dict[str, int]
    passed_on: dict[str, int]


def status() -> Status:
    """Whether it is switched on, and where convolutions were compiled and computed since the import.

    Returns
    -------
    Status
        The switch, the settings of the next convolution, and the counts.
    """
    return Status(
        is_enabled(),
        jax.__version__,
        cpu.isa,
        (_state and _state[1]) or get_default_algorithm(),
        get_num_threads(),
        computed(),
        dict(lowering.LOWERED),
        dict(lowering.PASSED_ON),
    )
