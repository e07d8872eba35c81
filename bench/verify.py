"""The reference for results, and the error that they may have.

The expected result is this package's own in float64. Some of its elements are computed here from the definition, term
by term and with exact summation. Otherwise a mistake of the package's float64 kernels would be the reference for all.
"""

from math import fsum, prod

import numpy as np

#: Greatest error, relative to the greatest element of the result. An algorithm may lose 2e-5 in float32 sums; a power
#: of two is one rounding to the type. float64 sums of up to 400 000 terms of random sign lose less than 4e-14.
TOLERANCES = {
    "float16": 2e-5 + 2.0**-11,
    "bfloat16": 2e-5 + 2.0**-8,
    "float32": 2e-5,
    "float64": 4e-14,
    "int32": 0.0,
}
#: Other libraries may be this many times less accurate: some sum float16 in float16. The comparison should not leave
#: out a fast result that their users accept. The report lists the errors.
PEER_SLACK = 16
#: Error relative to the sum of the magnitudes of all terms. A missing term costs more: there are less than 10**6 terms.
SPOT_TOLERANCE = 4e-14


class Wrong(Exception):
    """There is no correct result to compare with."""


def rounded_to(dtype, array):
    """The values that an array of the type can hold, still as float64."""
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    return array.astype(dtype).astype(np.float64)


def draw(shape, dtype, rng):
    """Random normals of the type. Integers are small and not zero, so their sums are exact in float64."""
    if dtype == "int32":
        return rng.integers(1, 9, shape) * rng.choice([-1.0, 1.0], shape)
    return rounded_to(dtype, rng.standard_normal(shape))


def meetings(case, fixed, at):
    """For each axis, the (positions of y, taps, positions of x) of all existing terms in which ``fixed`` is ``at``.

    ``fixed`` names one of the three.
    """
    axes = zip(case.x[2:], case.y[2:], case.kernel, case.stride, case.dilation, case.padding, at, strict=True)
    for x, y, kernel, stride, dilation, (begin, _), here in axes:
        p, t = (array.ravel() for array in np.mgrid[:y, :kernel])
        q = p * stride + t * dilation - begin
        exist = (q >= 0) & (q < x) & ({"p": p, "t": t, "q": q}[fixed] == here)
        yield p[exist], t[exist], q[exist]


def element(case, kernel, index, x, w, y):
    """One element of a kernel's result from the definition, and the sum of the magnitudes of its terms."""
    ins, outs = case.w[1], case.y[1] // case.groups
    fixed = {"fprop": "p", "wgrad": "t", "dgrad": "q"}[kernel]
    p, t, q = (np.ix_(*axes) for axes in zip(*meetings(case, fixed, index[2:]), strict=True))
    if kernel == "fprop":
        n, o = index[:2]
        first = o // outs * ins
        terms = x[n, first : first + ins][(slice(None), *q)] * w[o][(slice(None), *t)]
    elif kernel == "dgrad":
        n = index[0]
        group, i = divmod(index[1], ins)
        here = slice(group * outs, (group + 1) * outs)
        terms = y[n, here][(slice(None), *p)] * w[here, i][(slice(None), *t)]
    else:
        o, i = index[:2]
        terms = x[:, o // outs * ins + i][(slice(None), *q)] * y[:, o][(slice(None), *p)]
    return fsum(terms.flat), fsum(np.abs(terms).flat)


def is_within_rounding(case, kernel, result, expected, magnitudes):
    """Whether each element of a float32 or float64 result is as near to the expected one as a plain sum has to be.

    The contract of a sum of K terms, formed in any order, is an error of at most (K + 1)·eps·S. ``magnitudes`` has S,
    the sum of the magnitudes of the terms. Sums of 100,000 terms may exceed ``TOLERANCES``, which are made for layers
    of networks.
    """
    terms = {"fprop": case.w[1:], "dgrad": (case.w[0] // case.groups, *case.kernel), "wgrad": (case.y[0], *case.y[2:])}
    bound = (prod(terms[kernel]) + 1) * np.finfo(case.dtype).eps * magnitudes
    return bool((np.abs(result.astype(np.float64) - expected) <= bound).all())


def spot_check(case, kernel, result, x, w, y, rng, elements=4):
    """Raise ``Wrong`` if an element of a float64 result differs from the definition."""
    for _ in range(elements):
        index = tuple(int(rng.integers(size)) for size in result.shape)
        expected, size = element(case, kernel, index, x, w, y)
        if not abs(result[index] - expected) <= SPOT_TOLERANCE * size:
            raise Wrong(f"{kernel} of {case.name} at {index} is {result[index]!r} in float64, not {expected!r}")


def fault(error, dtype, slack=1):
    """The fault in a result of this relative error, or None."""
    tolerance = slack * TOLERANCES[dtype]
    return None if error <= tolerance else f"relative error {error:.1e}, more than {tolerance:.1e}"
