"""Imported by every Python of a test that plants a fault: CHECK_FAULT names it. The check's children inherit it."""

import os
import signal


def _in_kernel():
    """The kernel of filter gradients changes the lowest bit of one float16 number."""
    import numpy as np

    from convgrad_cy.cpu.machine.kernels import compiled

    right = compiled.wgrad

    def wrong(code, x, dw, dy, *others):
        done = right(code, x, dw, dy, *others)
        if code == 0:
            bits = np.asarray(dw).view(np.uint16)
            bits[(-1,) * bits.ndim] ^= 1
        return done

    compiled.wgrad = wrong


def _crash():
    """The process ends in the second function."""
    import convgrad_cy

    convgrad_cy.conv_backward_data = lambda *arrays, **keywords: os.kill(os.getpid(), signal.SIGILL)


if "CONVGRAD_CY_ISA" in os.environ and "CHECK_FAULT" in os.environ:  # a child that checks kernels
    {"kernel": _in_kernel, "crash": _crash}[os.environ["CHECK_FAULT"]]()
