"""Layers that no network has, as lines of suites.txt: random geometries, and curves on which one size grows.

Random geometries have up to 500 taps and 64 positions of y on an axis, each power alike, with strides, dilation,
padding and groups. On a curve, the filter or y grows.
"""

import random
from itertools import chain
from math import exp, log, prod

SETS = ("random", "taps", "positions")
CURVES = SETS[1:]
TAPS, POSITIONS, CHANNELS, IMAGES = 500, 64, 512, 8  # at most
MOST_FLOP, MOST_ELEMENTS = 1e9, 1 << 23
#: For each curve: (images, groups, channels of x and of y in a group), and the growth from one point to the next.
KINDS = ((1, 1, 64, 64), (1, 64, 1, 1), (4, 1, 16, 16), (1, 1, 4, 4), (1, 1, 128, 16))
GROWTH = 1.3


def line_of(name, images, groups, channels, outputs, axes, transposed=False):
    """A layer as a line of suites.txt; the channels are for one group."""
    names = ["iokspd"[i] + name for name in "dhw"[-len(axes) :] for i in range(6)]
    sizes = "".join(f"{name}{size}" for name, size in zip(names, chain(*axes), strict=True))
    problem = f'mb{images}g{groups}ic{groups * channels}oc{groups * outputs}{sizes}n"{name}"'
    return f"{'transposed ' if transposed else ''}{problem}"


def axis_of(y, kernel, stride=1, dilation=1, pad=0):
    """(x, y, kernel, stride, pad, dilation less one) of an axis. x may be less than one; then no such layer exists."""
    return (y - 1) * stride + (kernel - 1) * dilation + 1 - 2 * pad, y, kernel, stride, pad, dilation - 1


def is_affordable(images, groups, channels, outputs, axes):
    """Whether x is not empty, and the tensors and products of a layer stay within the bounds."""
    x, y, taps = (prod(sizes) for sizes in list(zip(*axes, strict=True))[:3])
    tensors = images * groups * channels * x, groups * channels * outputs * taps, images * groups * outputs * y
    fits = min(axes)[0] >= 1 and max(tensors) <= MOST_ELEMENTS
    return fits and 2 * images * groups * channels * outputs * taps * y <= MOST_FLOP


def drawn(rng, name):
    """The line of a random geometry."""

    def number(most):
        return int(exp(rng.uniform(0, log(most + 1))))

    while True:
        axes = []
        for _ in range(rng.choice((1, 1, 2, 2, 2, 3))):
            kernel, dilation = number(TAPS), number(16) if rng.random() < 0.25 else 1
            stride = number(kernel) if rng.random() < 0.4 else 1
            pad = rng.choice((0, 0, (kernel - 1) * dilation // 2, kernel // 4))
            axes.append(axis_of(number(POSITIONS), kernel, stride, dilation, pad))
        groups = number(CHANNELS) if rng.random() < 0.3 else 1
        most = 4 if groups > 16 else CHANNELS
        sizes = number(IMAGES), groups, number(most), number(most)
        if is_affordable(*sizes, axes):
            return line_of(name, *sizes, axes, rng.random() < 0.5)


def curve(which, kind, fixed):
    """The lines of a curve in two dimensions. ``which`` is taps or positions and grows; the other one is ``fixed``."""
    most, lines, size = (TAPS if which == "taps" else POSITIONS), [], 3 if which == "taps" else 1
    while size <= most:
        axes = [axis_of(fixed, size) if which == "taps" else axis_of(size, fixed)] * 2
        if is_affordable(*kind, axes):
            lines.append(line_of(f"{which}_{'_'.join(map(str, kind))}_at_{fixed}_of_{size}", *kind, axes))
        size = max(size + 1, int(size * GROWTH))
    return lines


def lines(sets, count, seed):
    """The lines of these sets, with the names of suites before them; ``count`` random geometries from a ``seed``."""
    rng, found = random.Random(seed), []
    if "random" in sets:
        found += ["[random]", *(drawn(rng, f"random_{seed}_{i}") for i in range(count))]
    for which, fixed in (("taps", (1, 2, 5, 16)), ("positions", (3, 8, 20, 50))):
        if which in sets:
            found += [f"[{which}]", *(line for kind in KINDS for size in fixed for line in curve(which, kind, size))]
    return found
