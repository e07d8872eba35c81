"""NaN and infinity through a family of GPU kernels, like tests/kernels/test_nonfinite.py for planned kernels."""

import numpy as np
from operations import Tensors, assert_same, dtype_of, integer_tensors, reference_kernel, spoiled
from simulated import Case

READ = {"fprop": "xw", "dgrad": "yw", "wgrad": "xy"}


def nonfinite_tensors(kernel, problem, dtype):
    """Single values at corners and anywhere, an operand full of infinities, and NaN everywhere."""
    tensors, _ = integer_tensors(problem, dtype)
    random = np.random.default_rng(3)
    ones = Tensors(*(np.ones_like(array) for array in tensors))
    for name in READ[kernel]:
        size = getattr(tensors, name).size
        for place, value in zip(
            (0, size - 1, *random.integers(0, size, 2)), (np.nan, np.inf, -np.inf, np.inf), strict=True
        ):
            yield spoiled(tensors, name, place, value)
        yield ones._replace(**{name: np.full_like(getattr(ones, name), np.inf)})
    yield Tensors(*(np.full_like(array, np.nan) for array in tensors))


def check_nonfinite(family, kernel, problem, dtype, **options):
    """Assert that a family's results equal the definition, and are +0 without terms."""
    terms = reference_kernel(
        kernel, problem, Tensors(*(np.ones(s) for s in (problem.x_shape, problem.w_shape, problem.y_shape)))
    )
    for tensors in nonfinite_tensors(kernel, problem, dtype):
        case = Case(kernel, problem, tensors, **options)
        result = case.run(family.launches(case.task)).astype(np.float64)
        assert_same(result, reference_kernel(kernel, problem, tensors).astype(dtype_of(dtype)).astype(np.float64))
        assert not np.signbit(result[terms == 0]).any()
