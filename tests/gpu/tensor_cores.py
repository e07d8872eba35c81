"""What tests of the tensor-core kernels share: kinds of numbers, and how one problem is run."""

import numpy as np
import pytest
from simulated import OPERATIONS, Case

from convgrad_cy.gpu import mma, module

#: Dtype and precision of each.
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


#: Without the second pass, which forms again what is not finite: it would hide that a tile read what nobody wrote.
TILES_ALONE = changed("return value - value == 0;", "return true;")


def run(case, text=TILES_ALONE, **keywords):
    assert mma.can(case.task)
    return case.run(mma.launches(case.task), text=text, **keywords).astype(np.float64)
