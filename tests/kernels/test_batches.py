"""An item of a batch has the bits that it has alone, with "direct", and with "auto" in types of one algorithm."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, Tensors, bits, real_tensors
from problems import PROBLEMS, parse

#: Problems with many channels and few positions, or with long filters. Windows and chunks must not depend on the batch.
WIDE = [
    parse('mb1ic65ih4oc65kh3ph1n"batch_one_box"'),
    parse('mb1ic512ih7oc512kh3ph1n"batch_large_filter"'),
    parse('mb1ic128ih28oc128kh3sh2ph1n"batch_strided"'),
    parse('mb1ic512ih4oc100kh4n"batch_dense"'),
    parse('mb1ic80iw32oc256kw7pw3n"batch_long_filter"'),
    parse('mb1ic96ih28oc192kh2sh2n"batch_patches"'),
    parse('mb1ic300ih9oc70kh3dh11ph12n"batch_far_taps"'),
    parse('g2mb1ic128ih6oc96kh5sh3ph2n"batch_groups"'),
]
IMAGES = 7


def batch_of(problem, images):
    return type(problem)(**{**vars(problem), "batch": images})


def differing(problems, dtype, data_format, algorithm):
    """Parts of a batch whose result differs from the result that they have alone."""
    wrong = []
    for problem in problems:
        for name in ("conv", "conv_backward_data"):
            operation, (x, w, y) = OPERATIONS[name], real_tensors(batch_of(problem, IMAGES), dtype)

            def result(first, end, operation=operation, problem=problem, x=x, w=w, y=y):
                tensors = Tensors(x[first:end], w, y[first:end])
                own = batch_of(problem, end - first)
                return operation.call(own, tensors, data_format, layout=np.ascontiguousarray, algorithm=algorithm)

            together = result(0, IMAGES)
            parts = [(0, 1), (IMAGES // 2, IMAGES // 2 + 1), (IMAGES - 2, IMAGES)]
            wrong += [
                (str(problem), name, part)
                for part in parts
                if bits(np.ascontiguousarray(together[slice(*part)])) != bits(result(*part))
            ]
    return wrong


@pytest.mark.parametrize("data_format", ("NCX", "NXC"))
def test_direct(data_format):
    assert differing(PROBLEMS.values(), "float32", data_format, "direct") == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("data_format", ("NCX", "NXC"))
def test_direct_of_many_channels(dtype, data_format):
    assert differing(WIDE, dtype, data_format, "direct") == []


@pytest.mark.parametrize("dtype", ("float64", "int32"))
def test_auto_of_types_with_one_algorithm(dtype):
    assert differing(WIDE, dtype, "NCX", "auto") == []


def test_differences_are_seen():
    """The comparison must see differences.

    Here "auto" takes one algorithm for a float32 batch, and another for an item.
    """
    assert differing(WIDE[:2], "float32", "NCX", "auto") != []
