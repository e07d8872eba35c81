"""The error of a result on a GPU: no element may be NaN, and some images or filters are compared in float64."""

import torch

#: Filters of the first ones, and of the last ones, that are compared.
_FILTERS = 4


def convolved(x, w, y, case, groups, kernel):
    """The results of one row's kernel, by PyTorch: one tensor, or both gradients."""
    begins, none = [begin for begin, _ in case.padding], [0] * case.rank
    if kernel == "fprop":
        return (torch.ops.aten.convolution(x, w, None, case.stride, begins, case.dilation, False, none, groups),)
    mask = [kernel in ("dgrad", "both"), kernel in ("wgrad", "both"), False]
    gradients = torch.ops.aten.convolution_backward(
        y, x, w, None, case.stride, begins, case.dilation, False, none, groups, mask
    )
    return tuple(gradient for gradient, wanted in zip(gradients, mask, strict=True) if wanted)


def _filters(x, w, y, case, first):
    """The filter gradient of the filters from ``first`` on, which are in one group, as one group."""
    outs, ins = case.y[1] // case.groups, case.w[1]
    group = first // outs
    chosen = slice(first, min(first + _FILTERS, (group + 1) * outs))
    x = x[:, group * ins : (group + 1) * ins].double()
    return chosen, convolved(x, w[chosen].double(), y[:, chosen].double(), case, 1, "wgrad")[0]


def parts(case, kernel, x, w, y, result):
    """Pairs of a part of a result and the exact numbers there: the first and the last image, or filters."""
    if kernel == "wgrad":
        per_group = case.y[1] // case.groups
        last = case.y[1] - min(_FILTERS, per_group)
        for first in {0, last}:
            chosen, exact = _filters(x, w, y, case, first)
            yield result[chosen], exact
        return
    for image in {0, case.x[0] - 1}:
        one = slice(image, image + 1)
        (exact,) = convolved(x[one].double(), w.double(), y[one].double(), case, case.groups, kernel)
        yield result[one], exact


def error(case, kernel, x, w, y, result):
    """The greatest error relative to the greatest element of a part; infinite if any element is NaN."""
    if result.is_floating_point() and result.isnan().any():
        return float("inf")
    errors = [
        (part.double() - exact).abs().max().item() / max(exact.abs().max().item(), 1e-300)
        for part, exact in parts(case, kernel, x, w, y, result)
    ]
    return max(errors)
