"""The comparison that PyTorch and JAX share: one step with a framework's own kernels and one with ours."""

import numpy as np

from .tally import Tally

#: Largest difference of an array of the step, relative to its largest element. Each of the four layers may add the 2e-5
#: of the accuracy contract.
ALLOWED = 1e-4


def record(name, version, own, ours, calls):
    """The record of a framework.

    Parameters
    ----------
    name, version : str
        The framework.
    own, ours : dict
        Name -> array of a step, such as a gradient, computed by its own kernels and by ours.
    calls : int
        The number of calls that our kernels have computed.
    """
    tally, largest = Tally(name, "one step"), 0.0
    for array in own:
        scale = float(np.abs(own[array]).max())
        tally.compare(array, ours[array], own[array], ALLOWED * scale)
        largest = max(largest, float(np.abs(ours[array] - own[array]).max()) / scale)
    tally.check(calls > 0, "no call was computed by convgrad_cy")
    return tally.record(note=f"{version}, largest difference {largest:.0e}")


def missing(name, reason):
    """The record of a framework that cannot be used here; it is no failure."""
    return Tally(name, "one step").record(note=reason)
