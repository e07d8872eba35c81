"""A convolution in the syntax of oneDNN's benchdnn, such as ``mb8ic64ih56oc64kh3ph1n"name"``; the name may be missing.

Knows nothing of the rest of the package, so tests draw their problems from it, too.
"""

import re
from dataclasses import dataclass
from math import prod

_FIELD = re.compile(r"(mb|g|[io]c|[ioksdp][dhw])(\d+)_?")
_LINE = re.compile(rf'((?:{_FIELD.pattern})+)(?:n"(\w+)")?')


@dataclass(frozen=True)
class Problem:
    """One convolution; ``padding`` holds (begin, end) pairs, ``dilation`` is 1 where benchdnn writes 0."""

    name: str
    batch: int
    groups: int
    x_channels: int
    y_channels: int
    x: tuple
    y: tuple
    kernel: tuple
    stride: tuple
    dilation: tuple
    padding: tuple

    def __str__(self):
        return self.name

    @property
    def x_shape(self):
        return (self.batch, self.x_channels, *self.x)

    @property
    def w_shape(self):
        return (self.y_channels, self.x_channels // self.groups, *self.kernel)

    @property
    def y_shape(self):
        return (self.batch, self.y_channels, *self.y)

    @property
    def longest_sum(self):
        """The largest number of terms that a result of any of the three kernels can have."""
        taps = prod(self.kernel)
        return max(
            self.x_channels // self.groups * taps, self.y_channels // self.groups * taps, self.batch * prod(self.y), 1
        )

    @property
    def geometry(self):
        """What the reference wants beside the arrays."""
        return {
            "stride": self.stride,
            "dilation": self.dilation,
            "pad_begin": tuple(begin for begin, _ in self.padding),
            "groups": self.groups,
        }

    @property
    def keywords(self):
        """What the public functions want beside arrays and shapes."""
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
        }


def _axis(text, fields, axis, present):
    """x, y, kernel, stride, dilation and (begin, end) of one axis."""

    def value(letter, default):
        # benchdnn: a missing w is h, a missing h is d.
        for name in present[: present.index(axis) + 1][::-1]:
            if letter + name in fields:
                return fields[letter + name]
        return default

    x, kernel, stride = value("i", None), value("k", 1), value("s", 1)
    dilation, y, begin = value("d", 0) + 1, value("o", None), value("p", None)
    extent = (kernel - 1) * dilation + 1
    if y is None:
        begin = begin or 0
        y = (x + 2 * begin - extent) // stride + 1
    elif begin is None:
        begin = max(0, (y - 1) * stride + extent - x) // 2
    end = (y - 1) * stride + extent - x - begin
    if y < 1 or end <= -stride:
        raise ValueError(f"{text}: no convolution has these sizes along {axis}")
    return x, y, kernel, stride, dilation, (begin, max(0, end))


def parse(text):
    """The problem that one line describes."""
    match = _LINE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text}: not in the syntax of benchdnn, such as mb8ic64ih56oc64kh3ph1")
    pairs = _FIELD.findall(match.group(1))
    fields = {key: int(number) for key, number in pairs}
    if len(fields) != len(pairs):
        raise ValueError(f"{text}: a field is there twice")
    present = "dhw" if "id" in fields else "hw" if "ih" in fields else "w"
    missing = [key for key in ("ic", "oc", f"i{present[0]}") if key not in fields]
    if missing:
        raise ValueError(f"{text}: {missing} must be given")
    strangers = [key for key in fields if key[0] in "ioksdp" and key[1] != "c" and key[1] not in present]
    if strangers:
        raise ValueError(f"{text}: {strangers} belong to an axis that the problem does not have")
    axes = (_axis(text, fields, axis, present) for axis in present)
    x, y, kernel, stride, dilation, padding = zip(*axes, strict=True)
    groups, x_channels, y_channels = fields.get("g", 1), fields["ic"], fields["oc"]
    if x_channels % groups or y_channels % groups:
        raise ValueError(f"{text}: the groups do not divide the channels")
    return Problem(
        match.groups()[-1] or "",
        fields.get("mb", 2),
        groups,
        x_channels,
        y_channels,
        x,
        y,
        kernel,
        stride,
        dilation,
        padding,
    )
