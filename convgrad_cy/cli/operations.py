"""The operations of ``python -m convgrad_cy run``: one row for each, and the call of a row.

A framework's module is imported by the first use of one of its operations.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import convgrad_cy as cg


def _core():
    return cg


def _mindspore():
    from ..shims import mindspore

    return mindspore


def _tensorflow():
    from ..shims.tensorflow import raw_ops

    return raw_ops


def _onednn():
    from ..shims import onednn

    return onednn


class Operation(NamedTuple):
    """One operation.

    Attributes
    ----------
    module : callable
        Returns the module of the operation, which has there the name behind the dot.
    arrays : tuple of str
        The names of its arrays.
    results : tuple of str
        The names of its results.
    shape : str or None
        Name of a shape that may be given as an array, too.
    sequence : type
        Type of the argument for a list in JSON.
    """

    module: Callable[[], Any]
    arrays: tuple[str, ...]
    results: tuple[str, ...]
    shape: str | None = None
    sequence: type = list


OPERATIONS = {
    "conv": Operation(_core, ("x", "w"), ("y",)),
    "conv_backward_data": Operation(_core, ("dy", "w"), ("dx",)),
    "conv_backward_filter": Operation(_core, ("x", "dy"), ("dw",)),
    "conv_backward": Operation(_core, ("dy", "x", "w"), ("dx", "dw")),
    "conv_transpose": Operation(_core, ("x", "w"), ("y",)),
    "conv_transpose_backward_data": Operation(_core, ("dy", "w"), ("dx",)),
    "conv_transpose_backward_filter": Operation(_core, ("x", "dy"), ("dw",)),
    "conv_transpose_backward": Operation(_core, ("dy", "x", "w"), ("dx", "dw")),
    "mindspore.Conv2DBackpropInput": Operation(_mindspore, ("dout", "weight"), ("output",), "input_size", tuple),
    "mindspore.Conv2DTranspose": Operation(_mindspore, ("dout", "weight"), ("output",), "input_size", tuple),
    "tensorflow.Conv2D": Operation(_tensorflow, ("input", "filter"), ("output",)),
    "tensorflow.Conv2DBackpropInput": Operation(_tensorflow, ("filter", "out_backprop"), ("output",), "input_sizes"),
    "tensorflow.Conv2DBackpropFilter": Operation(_tensorflow, ("input", "out_backprop"), ("output",), "filter_sizes"),
    "onednn.ConvolutionBackpropData": Operation(_onednn, ("output_delta", "filter"), ("input_delta",), "output_shape"),
    "onednn.ConvTransposeBackpropFilters": Operation(
        _onednn, ("input_forward", "output_delta"), ("filter_delta",), "filter_shape"
    ),
    "onednn.Convolution": Operation(_onednn, ("src", "weights"), ("dst",)),
    "onednn.ConvolutionBackwardData": Operation(_onednn, ("diff_dst", "weights"), ("diff_src",), "dst_shape"),
    "onednn.ConvolutionBackwardWeights": Operation(_onednn, ("src", "diff_dst"), ("diff_weights",), "weights_shape"),
    "onednn.ConvTranspose": Operation(_onednn, ("src", "weights"), ("dst",)),
    "onednn.ConvTransposeBackwardData": Operation(_onednn, ("diff_dst", "weights"), ("diff_src",)),
    "onednn.ConvTransposeBackwardWeights": Operation(_onednn, ("src", "diff_dst"), ("diff_weights",), "weights_shape"),
}


def target_of(name):
    """The function of an operation, or the class whose objects are called."""
    return getattr(OPERATIONS[name].module(), name.rpartition(".")[2])


def attributes_of(name):
    """The parameters that a JSON file can give, with their defaults: all except the arrays."""
    operation = OPERATIONS[name]
    parameters = inspect.signature(target_of(name)).parameters.values()
    attributes = {row.name: row.default for row in parameters if row.name not in (*operation.arrays, "out")}
    return attributes if operation.shape is None else {operation.shape: inspect.Parameter.empty} | attributes


def call(name, arrays, attributes):
    """The results of an operation, in order. ``arrays`` maps names to arrays; a shape among them is an attribute."""
    sequence, target = OPERATIONS[name].sequence, target_of(name)
    given = {
        key: sequence(value) if isinstance(value, list) else value
        for key, value in attributes.items()
        if key not in arrays
    }
    if not isinstance(target, type):
        result = target(**arrays, **given)
        return result if isinstance(result, tuple) else (result,)
    constructed = inspect.signature(target).parameters.keys() & given.keys()
    made = target(**{key: given.pop(key) for key in constructed})
    return (made(*arrays.values(), *given.values()),)  # MindSpore: the remaining attribute is input_size


def table():
    """The arrays and results of every operation, and the attributes of the core's, as text."""
    rows = []
    for name, operation in OPERATIONS.items():
        rows.append(f"  {name}: {', '.join(operation.arrays)} -> {', '.join(operation.results)}")
        if operation.module is _core:
            rows.append(f"      {', '.join(attributes_of(name))}")
    return "\n".join(rows)
