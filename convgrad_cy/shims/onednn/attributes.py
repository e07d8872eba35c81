"""The attributes of the operations as tables, like oneDNN's op schemas, and the check of a value."""

from typing import Any, NamedTuple

import numpy as np

from ...checks.keywords import choice, integer, shown


class GraphError(Exception):
    """A call that oneDNN Graph refuses, with its status.

    Attributes
    ----------
    status : str
        oneDNN's name of the status: "invalid_graph_op", "invalid_shape" or "invalid_arguments".
    """

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        return f"{self.args[0]} ({self.status})"


class GraphTypeError(GraphError, TypeError):
    """An attribute is missing, unknown or of the wrong type, or the inputs have the wrong number or dtype."""


class GraphValueError(GraphError, ValueError):
    """A value is out of range, or shapes do not agree."""


def entries(value):
    """The members of a tuple, a list or an array, or None for anything else."""
    if isinstance(value, (tuple, list)):
        return value
    return list(value) if isinstance(value, np.ndarray) and value.ndim else None


class Attribute(NamedTuple):
    """One row of a schema.

    Attributes
    ----------
    name : str
        The caller's name of the attribute.
    kind : str
        "s64[]", "s64" or "string".
    required : bool
        Whether it must be given.
    default : object
        Its value if it is optional and not given.
    least : int
        Least value of the integers.
    choices : dict
        Allowed strings -> their meanings.
    status : str
        oneDNN's status for a value out of range.
    """

    name: str
    kind: str
    required: bool = False
    default: Any = None
    least: int = 0
    choices: dict | None = None
    status: str = "invalid_graph_op"

    def value_of(self, value):
        """The checked value: a tuple of ints, an int, or the meaning of a string. None stands for the default."""
        if value is None:
            return self.default if self.choices is None else self.choices[self.default]
        members = entries(value) if self.kind == "s64[]" else value
        if members is None:
            raise TypeError(f"{self.name} must be a sequence of integers, not {shown(value)}")
        if isinstance(members, (str, list, tuple)) and not members:
            raise GraphValueError(f"{self.name} must not be empty", "invalid_arguments")
        try:
            if self.kind == "string":
                return choice(value, self.name, self.choices)
            if self.kind == "s64":
                return integer(value, self.name, self.least)
            return tuple([integer(member, f"{self.name}[{i}]", self.least) for i, member in enumerate(members)])
        except ValueError as error:
            raise GraphValueError(str(error), self.status) from error


#: No padding, along one axis.
VALID = (0, 0)
#: Value of auto_pad -> the core's padding, or None if the two pads attributes hold it.
AUTO_PAD = {"none": None, "valid": VALID, "same_upper": "same_upper", "same_lower": "same_lower"}
AUTO_PAD |= {"None": None, "VALID": VALID, "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower"}

# Attributes that are the same in all operations, in the order of oneDNN's schemas.
_STRIDES = Attribute("strides", "s64[]", required=True, least=1, status="invalid_arguments")
_PADS_BEGIN = Attribute("pads_begin", "s64[]", required=True)
_PADS_END = Attribute("pads_end", "s64[]", required=True)
_DILATIONS = Attribute("dilations", "s64[]", required=True, least=1, status="invalid_arguments")
_AUTO_PAD = Attribute("auto_pad", "string", default="none", choices=AUTO_PAD)
_OUTPUT_PADDING = Attribute("output_padding", "s64[]", status="invalid_arguments")
_GROUPS = Attribute("groups", "s64", default=1, least=1, status="invalid_arguments")
_DATA_FORMAT = Attribute("data_format", "string", default="NXC", choices={"NXC": "NXC", "NCX": "NCX"})


class FilterLayout(NamedTuple):
    """A layout of the filter in the terms of the core.

    Attributes
    ----------
    core : str
        The core's `filter_format`.
    transposed : bool
        Whether the convolution is transposed: its input is the core's y and its output is the core's x.
    exchanged : bool
        Whether its two channel axes are in the opposite order to the core's.
    """

    core: str
    transposed: bool = False
    exchanged: bool = False


#: Filters of convolutions, in the documents and in v3.
CONVOLUTION = {"XIO": FilterLayout("XIO"), "OIX": FilterLayout("OIX")}
#: Filters of transposed convolutions in v3. Their I is the core's O.
TRANSPOSED = {"XOI": FilterLayout("XIO", True), "IOX": FilterLayout("OIX", True)}
#: Filters of transposed convolutions in the documents.
TRANSPOSED_V1 = {"XIO": FilterLayout("XIO", True, True), "OIX": FilterLayout("OIX", True, True)}


def schema(filter_format, layouts, shape=None, output_padding=False):
    """An operation's attributes: part in the call -> row.

    Parameters
    ----------
    filter_format : str
        The caller's name of the attribute for the filter's format.
    layouts : dict
        Its values; the first is the default.
    shape : str, optional
        The caller's name of the result's shape, if it does not follow from the inputs.
    output_padding : bool
        Whether there is such an attribute.
    """
    rows = {
        "strides": _STRIDES,
        "pads_begin": _PADS_BEGIN,
        "pads_end": _PADS_END,
        "dilations": _DILATIONS,
        "auto_pad": _AUTO_PAD,
        "groups": _GROUPS,
        "data_format": _DATA_FORMAT,
        "filter_format": Attribute(filter_format, "string", default=next(iter(layouts)), choices=layouts),
    }
    if output_padding:
        rows["output_padding"] = _OUTPUT_PADDING
    if shape is not None:
        rows["shape"] = Attribute(shape, "s64[]", status="invalid_shape")
    return rows


def checked(schema, given):
    """The value of every row, from the caller's attributes by name. The caller translates TypeErrors and ValueErrors.

    Returns
    -------
    dict
        part in the call -> value
    """
    unknown = given.keys() - {row.name for row in schema.values()}
    if unknown:
        raise TypeError(f"{min(unknown)} is no attribute; there are {', '.join(row.name for row in schema.values())}")
    auto_pad = given.get("auto_pad")
    automatic = isinstance(auto_pad, str) and AUTO_PAD.get(auto_pad) is not None
    values = {}
    for part, row in schema.items():
        value = given.get(row.name)
        if value is None and row.required and not (automatic and part in ("pads_begin", "pads_end")):
            raise TypeError(f"{row.name} is required")
        values[part] = row.value_of(value)
    return values
