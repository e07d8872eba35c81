"""How far a result may be from the exact one: the accuracy contract, as numbers for each element.

All of it is about sums of products: y = sum of a * b over K terms, with S = sum of |a| * |b|. K and S are sums of the
same kind, of ones and of magnitudes, so that whatever computes the exact result in float64 computes them, too.
"""

import torch

#: Half a unit in the last place of a type, relative to a number.
ROUNDING = {torch.float16: 2**-11, torch.bfloat16: 2**-8, torch.float32: 2**-24, torch.float64: 2**-53}

#: What "auto" may add to that, relative to the greatest element of the result.
AUTO = 2e-5

#: With fewer elements than this, the greatest of them may itself be a small difference of large terms. Among 64 that
#: are independent, one is not small beside its S.
FEW = 64


def are_few(result, *operands):
    """Whether the greatest element may be small: there are few, or the same numbers are read again and again."""
    return result.numel() < FEW or any(
        size > 1 and not step for one in operands for size, step in zip(one.shape, one.stride(), strict=True)
    )


def _smallest(dtype):
    """Half of the smallest number: what is rounded below the normal numbers may be off by that."""
    return torch.finfo(dtype).smallest_normal * ROUNDING[dtype]


def direct(dtype, exact, magnitudes, terms):
    """A sum in any order: K + 1 roundings of at most S each, in float32 at least, and one of the result.

    The exact result has as much of that error itself, computed in float64: it doubles the bound for float64, and is
    2**-29 of it for others, which the term of the + 1 covers.
    """
    eps = ROUNDING[dtype]
    if dtype is torch.float64:
        return 2 * (terms + 1) * eps * magnitudes
    return eps * exact.abs() + (1 + eps) * (terms + 1) * ROUNDING[torch.float32] * magnitudes + _smallest(dtype)


def contract(dtype, exact, magnitudes, terms, bias=None, few=False):
    """What is promised of a convolution or a gradient.

    A bias is added to the rounded sum c, so that y = c + b is rounded once more, after a sum in float32. For c itself
    |c| <= |y| + max |b|. The other arguments are those of y, whose terms the bias belongs to. Of few elements (see
    ``are_few``) either the promise holds or that of a sum in any order.
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
    """By how much the worst element is further off than allowed, in units of that; none is where it is at most 0.

    NaN, which no bound allows, has an excess as well.
    """
    if exact.numel() == 0:
        return 0.0
    off = (result.double() - exact).abs()
    fine = off <= allowed
    return 0.0 if fine.all() else float((off / allowed)[~fine].nan_to_num(torch.inf).max())
