"""Shared parts of tests of the tensor-core kernels: kinds of numbers, and the run of one problem."""

import numpy as np
import pytest
from simulated import OPERATIONS, Case

from convgrad_cy.gpu import mma, module

#: Dtype and precision of each kind.
KINDS = {
    "bfloat16": ("bfloat16", "high"),
    "float16": ("float16", "high"),
    "float64": ("float64", "high"),
    "float32-medium": ("float32", "medium"),
    "float32-high": ("float32", "high"),
}
kinds = pytest.mark.parametrize("kind", KINDS)
kernels = pytest.mark.parametrize("kernel", OPERATIONS)


def case_of(kernel, problem, tensors, kind, **keywords):
    return Case(kernel, problem, tensors, precision=KINDS[kind][1], **keywords)


def changed(old, new, text=module.text):
    """The CUDA text, changed in one place."""

    def changed_text(source, macros=()):
        right = text(source, macros)
        assert right.count(old) == (source.startswith("mma"))
        return right.replace(old, new)

    return changed_text


#: The text without the second pass, which repairs values that are not finite: it would hide a read of unwritten memory.
TILES_ALONE = changed("return value - value == 0;", "return true;")


def run(case, text=TILES_ALONE, **keywords):
    assert mma.can(case.task)
    return case.run(mma.launches(case.task), text=text, **keywords).astype(np.float64)
