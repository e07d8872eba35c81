"""Recorded calls of oneDNN: the shim's names with which they are replayed, and intended differences of the shim."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from convgrad_cy.shims import onednn

from . import replay

STATUS = re.compile(r" \((\w+)\)$")
#: v3's name -> the documents' name, and the documents' names of attributes that have other names there.
DOCUMENTED = {
    "ConvolutionBackwardData": (
        onednn.ConvolutionBackpropData,
        {"weights_format": "filter_format", "dst_shape": "output_shape"},
    ),
    "ConvTransposeBackwardWeights": (
        onednn.ConvTransposeBackpropFilters,
        {"weights_format": "filter_format", "weights_shape": "filter_shape"},
    ),
}
KINDS = (
    "Convolution",
    "ConvolutionBackwardData",
    "ConvolutionBackwardWeights",
    "ConvTranspose",
    "ConvTransposeBackwardData",
    "ConvTransposeBackwardWeights",
)
#: Operations that need the shape of their result.
SHAPED = ("ConvolutionBackwardData", "ConvolutionBackwardWeights", "ConvTransposeBackwardWeights")
#: v3's layouts of a transposed convolution's filter -> the documents' layouts, with the two channel axes exchanged.
EXCHANGED = {"XOI": ("XIO", (-2, -1)), "IOX": ("OIX", (0, 1))}


class Captured(NamedTuple):
    """A call, taken apart instead of evaluated."""

    kind: str
    attributes: dict
    arrays: tuple

    @classmethod
    def of(cls, expression):
        names = {kind: cls._capture(kind) for kind in KINDS} | {"t": replay.tensor, "np": np}
        return eval(expression, names)

    @classmethod
    def _capture(cls, kind):
        return lambda **attributes: lambda *arrays: cls(kind, attributes, arrays)

    @property
    def shape(self):
        """The result's shape as an attribute."""
        return self.attributes.get("dst_shape") or self.attributes.get("weights_shape")


def answer(expression, names):
    """The outcome of a call here. The text of an error is its status."""
    return replay.evaluate(expression, names | {"t": replay.tensor}, shorten=lambda text: STATUS.search(text)[1])


def v3_names():
    return {kind: getattr(onednn, kind) for kind in KINDS}


def documented_names():
    """The two operations under the documents' names. Their filters are copied to v3's layout afterwards."""

    def stand_in(kind):
        operation, renamed = DOCUMENTED[kind]

        def construct(**attributes):
            axes = None
            attributes = {renamed.get(name, name): value for name, value in attributes.items()}
            if kind == "ConvTransposeBackwardWeights":
                layout = attributes.get("filter_format", "XOI")
                attributes["filter_format"], axes = EXCHANGED.get(layout, (layout and f"{layout}?", None))
                if axes is not None and "filter_shape" in attributes:
                    attributes["filter_shape"] = _swapped(attributes["filter_shape"], axes)
            op = operation(**attributes)

            def call(*arrays):
                if axes is not None and len(arrays) == 3:
                    arrays = (*arrays[:2], np.array(_swapped(arrays[2], axes), arrays[2].dtype))
                result = op(*arrays)
                return result if axes is None else result.swapaxes(*axes)

            return call

        return construct

    return {kind: stand_in(kind) for kind in DOCUMENTED}


def _swapped(shape, axes):
    shape, (one, two) = list(shape), axes
    if len(shape) > 1:
        shape[one], shape[two] = shape[two], shape[one]
    return shape


class Difference(NamedTuple):
    """A rule for outcomes here that differ from oneDNN's.

    Attributes
    ----------
    row : str
        Its name, as in docs/golden-model.md.
    about : callable
        Whether the rule applies to a call. The second argument is oneDNN's outcome.
    right : callable
        Whether the rule allows an outcome here.
    """

    row: str
    about: Callable
    right: Callable = lambda here: here.error is None or _shape_refused(here)


def _refused(here):
    return here.text == "invalid_arguments"


def _shape_refused(here):
    return here.text in ("invalid_shape", "invalid_arguments")


def _least(name, call):
    value = call.attributes.get(name)
    members = value if isinstance(value, list) else [value]
    return min((member for member in members if type(member) is int), default=1)


def _auto_pad(call):
    return call.attributes.get("auto_pad") or "None"


def _is(number, name):
    """Whether a call is of a kind and has an attribute."""
    return lambda call, real: call.kind == KINDS[number] and name in call.attributes


#: Rules. One of those that apply to a call must allow its outcome here.
DIFFERENCES = (
    Difference(
        "dilations and groups that are not positive", lambda call, real: _least("dilations", call) < 1, _refused
    ),
    Difference("dilations and groups that are not positive", lambda call, real: _least("groups", call) < 1, _refused),
    Difference("output_padding that is negative", lambda call, real: _least("output_padding", call) < 0, _refused),
    Difference("output_padding of another length", _is(3, "output_padding"), lambda here: here.text == "invalid_shape"),
    Difference("output_padding of ConvTransposeBackpropFilters", _is(5, "output_padding")),
    Difference("output_padding of ConvolutionBackpropData", _is(1, "output_padding")),
    Difference(
        "lower case auto_pad", lambda call, real: _auto_pad(call) in ("none", "valid", "same_upper", "same_lower")
    ),
    Difference(
        "pads omitted under auto_pad",
        lambda call, real: not {"pads_begin", "pads_end"} <= call.attributes.keys() and _auto_pad(call) != "None",
    ),
    Difference("shape as a third input", lambda call, real: call.kind in SHAPED and len(call.arrays) == 3),
    Difference(
        "auto_pad of ConvTransposeBackpropFilters",
        lambda call, real: call.kind == KINDS[5] and _auto_pad(call)[:4].upper() == "SAME",
    ),
    Difference(
        "groups of ConvolutionBackpropData", lambda call, real: call.kind == KINDS[1] and _least("groups", call) > 1
    ),
    Difference(
        "dilations of ConvTransposeBackwardData",
        lambda call, real: call.kind == KINDS[4] and any(d != 1 for d in call.attributes.get("dilations", ())),
    ),
    Difference("empty result", lambda call, real: real.array is not None and real.array.size == 0, _shape_refused),
    Difference("empty filter", lambda call, real: real.text == "unimplemented", _refused),
    Difference("negative extent", lambda call, real: real.text == "compiled for a negative extent"),
)


def compare(real, here, call):
    """(the row by which they differ, the fault). Both are None if they agree."""
    wrong = replay.difference(real, here) if real.error is None or here.error is None else None
    if real.error is not None and here.error is not None and real.text != here.text:
        wrong = f"{real.text}\n  here: {replay.shown(here)}"
    if wrong is None:
        return None, None
    rows = [difference for difference in DIFFERENCES if difference.about(call, real)]
    for difference in rows:
        if difference.right(here):
            return difference.row, None
    return None, wrong
