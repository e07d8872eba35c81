"""The kernels for PyTorch's dispatcher. They plan new calls, and pass on the calls that we do not support."""

import logging
from collections import Counter
from functools import partial

import torch

from .._aten import Backward, Forward, Untraced
from ..memo.bounded import Bounded, counted
from ..settings.algorithm import on_change
from ..settings.threads import num_threads
from . import plans

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


def kernel(operator, kind, plan, within=_threads_of):
    """A kernel of class ``kind``. The function ``plan`` plans its new calls, in the context ``within(key)``."""
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
        known.keep(key, planned, counted(), generation)
        return planned

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
    "_convolution": kernel("_convolution", Forward, plans.forward),
    "convolution_backward": kernel("convolution_backward", Backward, plans.backward),
}
