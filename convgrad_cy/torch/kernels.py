"""The two kernels that the dispatcher gets: how they plan a new call, and how they pass one on."""

import logging
import os
from collections import Counter

import torch

from .._aten import Backward, Forward
from ..bounded import Bounded, counted
from ..default_algorithm import on_change
from ..threads import num_threads
from . import plans

logger = logging.getLogger("convgrad_cy.torch")

_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

#: Operator -> PyTorch's own kernel, or what another package had put above it, when ours was registered.
PREVIOUS = {}

#: (operator, reason) -> calls that went there.
PASSED_ON = Counter()


#: What is known of the calls of each kernel.
_KNOWN = []


def forget():
    """Let the next calls be planned anew."""
    for known in _KNOWN:
        known.clear()


on_change(forget)
if hasattr(os, "register_at_fork"):  # plans have the parent's threads, which the child has not
    os.register_at_fork(after_in_child=forget)


def own_kernel(operator):
    """PyTorch's kernel, whatever is registered for the CPU: that of a backend without any, as all share one."""
    return torch.library.get_kernel(f"aten::{operator}", "IPU")


def _kernel(operator, kind, plan):
    """A kernel whose new calls are planned by a function."""
    known = Bounded()
    _KNOWN.append(known)

    def make(key, *call):
        counted()  # what was counted before belongs to no call
        try:
            with num_threads(torch.get_num_threads()):
                planned = plan(*call)
        except plans.Declined as reason:
            planned = str(reason)
        known.keep(key, planned, counted())
        return planned

    def pass_on(reason, *call):
        PASSED_ON[operator, reason] += 1
        logger.debug("aten::%s went to PyTorch: %s", operator, reason)
        try:
            return PREVIOUS[operator].call_boxed(_CPU, *call)
        except RuntimeError as error:
            if "has been invalidated" not in str(error):
                raise
        # The package that had registered it has taken it away since.
        PREVIOUS[operator] = own_kernel(operator)
        return PREVIOUS[operator].call_boxed(_CPU, *call)

    return kind(known.entries, make, pass_on, torch.get_num_threads)


#: Operator -> our kernel.
KERNELS = {
    "_convolution": _kernel("_convolution", Forward, plans.forward),
    "convolution_backward": _kernel("convolution_backward", Backward, plans.backward),
}
