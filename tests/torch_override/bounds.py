"""The allowed error of a result: the accuracy contract, as a number for each element.

All bounds are about sums of products: y = sum of a * b over K terms, with S = sum of |a| * |b|. K is the same sum of
ones, and S of magnitudes, so code that computes the exact result in float64 computes them, too.
"""

import torch

#: Half a unit in the last place of a type, relative to a number.
ROUNDING = {torch.float16: 2**-11, torch.bfloat16: 2**-8, torch.float32: 2**-24, torch.float64: 2**-53}

#: The error that "auto" may add, relative to the greatest element of the result.
AUTO = 2e-5

#: With fewer elements than this, even the greatest one may be a small difference of large terms. Among 64 independent
#: elements, one is not small compared with its S.
FEW = 64


def are_few(result, *operands):
    """Whether the greatest element may be small: there are few elements, or equal numbers are read again and again."""
    return result.numel() < FEW or any(
        size > 1 and not step for one in operands for size, step in zip(one.shape, one.stride(), strict=True)
    )


def _smallest(dtype):
    """Half of the smallest number, the error of rounding below the normal numbers."""
    return torch.finfo(dtype).smallest_normal * ROUNDING[dtype]


def direct(dtype, exact, magnitudes, terms):
    """The bound of a sum in any order: K + 1 roundings of at most S each, in float32 or better, and one of the result.

    The exact result, computed in float64, has such an error itself. It doubles the bound for float64. For other types
    it is 2**-29 of the bound, and the + 1 covers it.
    """
    eps = ROUNDING[dtype]
    if dtype is torch.float64:
        return 2 * (terms + 1) * eps * magnitudes
    return eps * exact.abs() + (1 + eps) * (terms + 1) * ROUNDING[torch.float32] * magnitudes + _smallest(dtype)


def contract(dtype, exact, magnitudes, terms, bias=None, few=False):
    """The promised bound of a convolution or a gradient.

    A bias is added to the rounded sum c, so that y = c + b is rounded once more, after a sum in float32. For c itself,
    |c| <= |y| + max |b|. The other arguments describe y, whose terms include the bias. For few elements (see
    ``are_few``), either this promise holds or the bound of a sum in any order.
    """
    eps = ROUNDING[dtype]
    if exact.numel() == 0 or dtype is torch.float64:
        return direct(dtype, exact, magnitudes, terms)
    most = 0 if bias is None else bias.abs().max().double()
    unrounded = AUTO * (exact.abs().max() + most)
    if few:
        unrounded = torch.clamp((terms + 1) * ROUNDING[torch.float32] * magnitudes, min=float(unrounded))
    allowed = unrounded + eps * (exact.abs() + most + unrounded) + _smallest(dtype)
    if bias is not None:
        allowed = allowed + (eps + 2**-24) * (exact.abs() + allowed) + _smallest(dtype)
    return allowed


def excess(result, exact, allowed):
    """The excess of the worst element over its allowed error, in units of this error; at most 0 if none exceeds it.

    NaN has an excess as well: no bound allows it.
    """
    if exact.numel() == 0:
        return 0.0
    off = (result.double() - exact).abs()
    fine = off <= allowed
    return 0.0 if fine.all() else float((off / allowed)[~fine].nan_to_num(torch.inf).max())
