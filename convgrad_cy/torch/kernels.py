"""The kernels for PyTorch's dispatcher. They plan new calls, and pass on the calls that we do not support."""

import logging
from collections import Counter
from functools import partial

import torch

from .._aten import Backward, Forward, Untraced
from ..memo.bounded import Bounded, counted
from ..settings.algorithm import get_default_algorithm, on_change
from ..settings.threads import is_forked_child, num_threads
from . import call_texts, plans, trial

logger = logging.getLogger("convgrad_cy.torch")

#: A backend without kernels of its own. For it the dispatcher finds PyTorch's kernel that all backends share.
_SHARED = "IPU"

#: (operator, reason) -> calls that were passed on.
PASSED_ON = Counter()


#: The cache of prepared calls of each kernel.
_KNOWN = []


def forget():
    """Drop all prepared calls."""
    for known in _KNOWN:
        known.clear()


on_change(forget)


def _keys(name):
    return torch._C.DispatchKeySet(torch._C.DispatchKey.__members__[name])


def previous(operator, key):
    """The kernel that computes an operator at this dispatch key ("CPU" or "CUDA") before ours is registered."""
    registered = torch.library.get_kernel(f"aten::{operator}", key)
    # ``registered.call_boxed`` would hold Python's lock during the whole convolution. This does not.
    own = partial(getattr(torch.ops.aten, operator).default._handle.redispatch_boxed, _keys(_SHARED))
    if str(registered) == str(torch.library.get_kernel(f"aten::{operator}", _SHARED)):
        return own

    def others(*call):
        """Call the kernel of another package, or PyTorch's own if that package has removed its kernel."""
        try:
            return registered.call_boxed(_keys(key), *call)
        except RuntimeError as error:
            if "has been invalidated" not in str(error):
                raise
        return own(*call)

    return Untraced(others)


def _threads_of(key):
    """The context in which a call with this key is planned: its number of threads."""
    return num_threads(key[-1])


def kernel(operator, kind, plan, text=None, within=_threads_of):
    """A kernel of class ``kind``. The function ``plan`` plans its new calls, in the context ``within(key)``.

    ``text(key)`` describes a call, for choices by measurement. Without it, nothing is measured.
    """
    known = Bounded()
    _KNOWN.append(known)

    def make(key, *call):
        generation = known.generation  # before any setting is read
        counted()  # earlier counts of this thread belong to no call
        try:
            with within(key):
                planned = plan(*call)
        except plans.Unreadable as reason:  # the next call with this key may be readable
            return str(reason)
        except plans.Declined as reason:
            planned = str(reason)
        except MemoryError:
            raise
        except Exception as error:
            planned = reported(error)
        keep = partial(known.keep, key, size=counted(), generation=generation)
        if text and plans.choices and type(planned) is not str:
            planned = measured(planned, key, keep)
        keep(planned)
        return planned

    def measured(planned, key, keep):
        """The entry of a new call in ``known`` while kernels are chosen by measurement."""
        if is_forked_child() and key[-1] > 1:  # PyTorch's threads do not survive a fork, and its kernel waits for them
            return planned
        mask = key[-2] if type(planned) is tuple else None
        environment = call_texts.environment(key[-1], plans.algorithm or get_default_algorithm())
        return trial.of(planned, mask, plans.choices, (environment, text(key)), keep)

    def fail(key, error):
        reason = reported(error)
        known.keep(key, reason, 0)
        return reason

    def reported(error):
        """The reason for passing on a call after an error of this package. Each error is logged once."""
        reason = f"an error of convgrad_cy, {type(error).__name__}: {error}"
        if (operator, reason) not in PASSED_ON:
            message = "aten::%s went to PyTorch: %s. The result is right. Please report the error."
            logger.error(message, operator, reason, exc_info=error)
        return reason

    def count(reason):
        PASSED_ON[operator, reason] += 1
        logger.debug("aten::%s went to PyTorch: %s", operator, reason)

    return kind(known.entries, make, fail, count, torch.get_num_threads)


#: Operator -> our kernel for the CPU.
KERNELS = {
    "_convolution": kernel("_convolution", Forward, plans.forward, call_texts.forward),
    "convolution_backward": kernel("convolution_backward", Backward, plans.backward, call_texts.backward),
}
