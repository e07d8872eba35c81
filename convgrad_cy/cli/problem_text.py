"""A convolution in the syntax of oneDNN's benchdnn, such as ``mb8ic64ih56oc64kh3ph1n"name"``; the name may be missing.

It imports nothing of the rest of the package, so tests parse their problems with it, too.
"""

import re
from dataclasses import dataclass
from math import prod

_FIELD = re.compile(r"(mb|g|[io]c|[ioksdp][dhw])([0-9]+)_?")
_LINE = re.compile(rf'((?:{_FIELD.pattern})+)(?:n"(\w+)")?')

#: The letters, for a user. The command's help and docs/command-line.md print them.
LETTERS = """\
  mb          batch; it must be given (benchdnn would take 2)
  g           groups (1)
  ic oc       channels of x and of y, all groups together
  id ih iw    sizes of x
  od oh ow    sizes of y (computed from the others, with the same padding on both sides)
  kd kh kw    sizes of the filter (1)
  sd sh sw    stride (1)
  pd ph pw    padding at the beginning (0, or half of the padding that a given size of y needs);
              the padding at the end follows from the size of y
  dd dh dw    dilation minus one, as in benchdnn: dh0 is dilation=1, dh1 is dilation=2 (0)"""


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
        """The keywords of the tests' reference."""
        return {
            "stride": self.stride,
            "dilation": self.dilation,
            "pad_begin": tuple(begin for begin, _ in self.padding),
            "groups": self.groups,
        }

    @property
    def keywords(self):
        """The keywords of the public functions."""
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
        }

    @property
    def output_padding(self):
        """The keyword with which a transposed convolution of y has the size of x."""
        axes = zip(self.x, self.y, self.kernel, self.stride, self.dilation, self.padding, strict=True)
        return tuple(
            x + begin + end - ((y - 1) * stride + (kernel - 1) * dilation + 1)
            for x, y, kernel, stride, dilation, (begin, end) in axes
        )


def _axis(fields, axis, present, transposed):
    """x, y, kernel, stride, dilation and (begin, end) of one axis of the convolution."""

    def value(letter, default):
        # benchdnn: a missing w is h, a missing h is d.
        for name in present[: present.index(axis) + 1][::-1]:
            if letter + name in fields:
                return fields[letter + name]
        return default

    source, kernel, stride = value("i", None), value("k", 1), value("s", 1)
    dilation, target, begin = value("d", 0) + 1, value("o", None), value("p", None)
    extent = (kernel - 1) * dilation + 1
    if target is None:
        begin = begin or 0
        if transposed:
            target = (source - 1) * stride + extent - 2 * begin
        else:
            target = (source + 2 * begin - extent) // stride + 1
    x, y = (target, source) if transposed else (source, target)
    padding = (y - 1) * stride + extent - x
    if begin is None:
        begin = max(0, padding) // 2
    end = padding - begin
    if target < 1 or end <= -(max(stride, dilation) if transposed else stride):
        kind = "transposed convolution" if transposed else "convolution"
        raise ValueError(f"no {kind} has these sizes along {axis}: i{axis} is {source}, o{axis} is {target}")
    return x, y, kernel, stride, dilation, (begin, max(0, end))


def _fields(text):
    """The numbers of one line by their letters, each in its range, and the line's name."""
    match = _LINE.fullmatch(text)
    if match is None:
        raise ValueError(f"must be in the syntax of benchdnn, such as mb8ic64ih56oc64kh3ph1, not {text!r}")
    pairs = _FIELD.findall(match.group(1))
    fields = {key: int(number) for key, number in pairs}
    for key, number in fields.items():
        if [letters for letters, _ in pairs].count(key) > 1:
            raise ValueError(f"{key} must be given once, not several times, in {text!r}")
        least = 0 if key in ("mb", "ic", "oc") or key[0] in "dp" else 1
        if number < least:
            raise ValueError(f"{key} must be at least {least}, not {number}, in {text!r}")
    return fields, match.groups()[-1] or ""


def parse(text, transposed=False):
    """The convolution that one line describes.

    A ``transposed`` line has the letters of a deconvolution in benchdnn: i stands for the input of the transposed
    convolution, and o for its result. The returned convolution goes from this result to this input; the transposed
    convolution is its data gradient.
    """
    fields, name = _fields(text)
    present = "dhw" if "id" in fields else "hw" if "ih" in fields else "w"
    for key in ("mb", "ic", "oc", f"i{present[0]}"):
        if key not in fields:
            raise ValueError(f"{key} must be given, in {text!r}")
    for key in fields:
        if key[0] in "ioksdp" and key[1] != "c" and key[1] not in present:
            raise ValueError(f"{key} must be left out where there is no i{key[1]}, in {text!r}")
    groups = fields.get("g", 1)
    for key in ("ic", "oc"):
        if fields[key] % groups:
            raise ValueError(f"{key} must be a multiple of g = {groups}, not {fields[key]}, in {text!r}")
    axes = (_axis(fields, axis, present, transposed) for axis in present)
    x, y, kernel, stride, dilation, padding = zip(*axes, strict=True)
    channels = (fields["oc"], fields["ic"]) if transposed else (fields["ic"], fields["oc"])
    return Problem(name, fields["mb"], groups, *channels, x, y, kernel, stride, dilation, padding)
