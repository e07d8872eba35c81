"""The functions of the package, called on the tensors of a layer."""

from typing import NamedTuple

import numpy as np

import convgrad_cy as cg

#: Formats of x and y, and of w.
FORMATS = (("NCX", "OIX"), ("NXC", "XIO"))


class Function(NamedTuple):
    """A function, and the tensors that it reads and makes. The column is its place in the table."""

    name: str
    reads: str
    makes: str
    column: str

    def call(self, case, tensors, formats=FORMATS[0], algorithm="direct", convert=None):
        """The results for tensors in NCX and OIX, in the same formats, as a dict.

        The function itself is called in ``formats``. ``convert`` makes its arrays from NumPy's.
        """
        arrays = [_to(formats, letter, getattr(tensors, letter)) for letter in self.reads]
        arrays = arrays if convert is None else [convert(array) for array in arrays]
        keywords = {**case.problem.keywords, "data_format": formats[0], "filter_format": formats[1]}
        if self.name.startswith("conv_transpose"):
            keywords["output_padding"] = case.problem.output_padding
        if len(self.makes) == 1 and self.name in _SHAPED:
            made = np.broadcast_to(np.int8(0), getattr(case.shapes, self.makes))
            keywords[f"{self.makes}_shape"] = _to(formats, self.makes, made).shape
        found = getattr(cg, self.name)(*arrays, algorithm=algorithm, **keywords)
        found = found if isinstance(found, tuple) else (found,)
        return {letter: _from(formats, letter, array) for letter, array in zip(self.makes, found, strict=True)}


# The filter of a transposed convolution is the filter of the convolution whose gradient it is. Its x is the latter's y.
FUNCTIONS = (
    Function("conv", "xw", "y", "conv"),
    Function("conv_backward_data", "yw", "x", "data"),
    Function("conv_backward_filter", "xy", "w", "filter"),
    Function("conv_backward", "yxw", "xw", "both"),
    Function("conv_transpose", "yw", "x", "transposed"),
    Function("conv_transpose_backward_data", "xw", "y", "transposed"),
    Function("conv_transpose_backward_filter", "yx", "w", "transposed"),
    Function("conv_transpose_backward", "xyw", "yw", "transposed"),
)
COLUMNS = tuple(dict.fromkeys(function.column for function in FUNCTIONS))
_SHAPED = ("conv_backward_data", "conv_backward_filter", "conv_transpose_backward_filter")


def _moved(formats, letter):
    """Whether the format of a tensor has its channels at the end."""
    return formats[1] == "XIO" if letter == "w" else formats[0] == "NXC"


def _to(formats, letter, array):
    if not _moved(formats, letter):
        return array
    return np.ascontiguousarray(np.moveaxis(array, (0, 1), (-1, -2)) if letter == "w" else np.moveaxis(array, 1, -1))


def _from(formats, letter, array):
    """The inverse of `_to`, as a view, for arrays of any library."""
    if not _moved(formats, letter):
        return array
    last = array.ndim - 1
    axes = (last, last - 1, *range(last - 1)) if letter == "w" else (0, last, *range(1, last))
    return array.transpose(axes)
