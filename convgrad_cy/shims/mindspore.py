"""MindSpore's ``Conv2DBackpropInput`` and ``Conv2DTranspose`` on NumPy and CuPy arrays.

Signatures, defaults, attributes, the order of the checks and the messages follow MindSpore 2.10 on the CPU.
``docs/golden-model.md`` lists the differences. The module also has the few names around the two operators: ``ops``,
``dtype``, ``Tensor`` and some types. So a program needs no more than another import line.
"""

import functools
import inspect
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..api import conv, conv_backward_data
from ..arrays import zeros
from ..checks.shapes import check_channels
from .mindspore_rules import INTEGER_OR_TUPLE, check_choice, check_integer, check_type, checked_binding, positive_sizes
from .shapes import checked_paddings, named, whole_numbers

__all__ = [
    "Conv2DBackpropInput",
    "Conv2DTranspose",
    "ShapeError",
    "Tensor",
    "TensorTypeError",
    "dtype",
    "float16",
    "float32",
    "float64",
    "int32",
    "int64",
    "ops",
    "shape",
]


def __dir__() -> list[str]:
    return __all__


_ORDERS = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2)}  # the caller's axes in the order N, C, H, W


class ShapeError(ValueError, RuntimeError):
    """Shapes that no convolution with the operator's attributes has.

    MindSpore raises RuntimeError from inside its kernels, or ValueError for some of them.
    """


class TensorTypeError(TypeError, RuntimeError):
    """``dout`` is no tensor. MindSpore raises RuntimeError here."""


class Conv2DBackpropInput:
    """The gradient of a two-dimensional convolution with respect to its input.

    For each group, with ``t`` over the taps of the weight::

        result[n, i, q] = sum over o, p, t with p * stride + t * dilation - pad == q of  dout[n, o, p] * weight[o, i, t]

    An operator is called by position, as ``op(dout, weight, input_size)``. dout is (N, Cout, Hout, Wout) and weight is
    (Cout, Cin / group, kh, kw). input_size is the shape of the result, (N, Cin, Hin, Win), as a tuple, a list or an
    integer array. Under "NHWC" the second entry of all three comes last. Positions that no tap reaches are zero.
    dout, weight and the result have one dtype: float16, bfloat16 (of ml_dtypes), float32, float64 or int32.

    Parameters
    ----------
    out_channel : int
        Channels of dout. It is checked, but the weight's shape decides.
    kernel_size : int or tuple of int
        (kh, kw). It is checked, but the weight's shape decides.
    pad_mode : str
        "valid", "same" (Hout is ``ceil(Hin / stride)``, and the extra element of an odd total is at the end) or "pad".
        Case is ignored.
    pad : int or tuple of int
        Padding under "pad": one number for all sides, or (top, bottom, left, right).
    pad_list : tuple or list of int, optional
        Replaces `pad` under "pad", unless an entry is -1.
    mode : int
        0: convolution with a flipped kernel. 1: cross-correlation. 2: deconvolution, the gradient of a transposed
        convolution, which is the convolution of dout with a weight (Cin, Cout / group, kh, kw). 3: depthwise, with
        Cin groups (`group` may be 1 or Cin) and a weight (Cout, 1, kh, kw).
    stride, dilation : int or tuple of int
        One number for both axes, or (h, w), or four numbers in the order of `data_format`. The numbers for N and C
        have no effect.
    group : int
        Number of groups of channels.
    data_format : str
        "NCHW" or "NHWC".

    Raises
    ------
    TypeError
        A parameter has the wrong type, or the tensors have two dtypes or one that is not listed.
    ValueError
        A parameter is out of its range, or the number of arguments is not three.
    ShapeError
        The shapes do not agree.
    RuntimeError
        A parameter does not fit into 64 bits.

    Notes
    -----
    It follows the documentation of ``mindspore.ops.Conv2DBackpropInput`` (r1.3), and the checks of MindSpore 2.10.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad_cy.shims.mindspore import ops
    >>> dout = np.ones((1, 1, 1, 2), np.float32)
    >>> weight = np.array([[[[1, 2, 3]]]], np.float32)
    >>> ops.Conv2DBackpropInput(out_channel=1, kernel_size=(1, 3), stride=2)(dout, weight, (1, 1, 1, 6))
    array([[[[1., 2., 4., 2., 3., 0.]]]], dtype=float32)
    """

    _uses_mode = True

    @checked_binding
    def __init__(
        self, out_channel, kernel_size, pad_mode="valid", pad=0, pad_list=None, mode=1, stride=1, dilation=1, group=1,
        data_format="NCHW",
    ):  # fmt: skip
        op = self.name = type(self).__name__
        self.out_channel = check_integer(op, "out_channel", out_channel, "> 0")
        self.kernel_size = positive_sizes(op, "kernel_size", kernel_size, (2,), "two")
        check_choice(op, "format", data_format, list(_ORDERS))
        self.format = self.data_format = data_format
        self.stride = self._of_all_axes("stride", stride)
        self.dilation = self._of_all_axes("dilation", dilation)
        self.pad = self.padding = self._check_pad(pad, pad_mode)
        self.pad_mode = pad_mode.upper()
        self.mode = check_integer(op, "mode", mode, "be one of 0, 1, 2, 3" if self._uses_mode else "be an integer")
        self.group = self.groups = check_integer(op, "group", group, "> 0")
        if pad_list:
            for entry in pad_list:
                if entry != -1:
                    check_integer(op, "element of pad_list", entry, ">= 0")
        self.pad_list = pad_list
        self._geometry = _Geometry(
            self.format,
            self.mode if self._uses_mode else 1,
            tuple([self.stride[i] for i in _ORDERS[self.format][2:]]),
            tuple([self.dilation[i] for i in _ORDERS[self.format][2:]]),
            self._pads(),
            self.group,
        )

    def _of_all_axes(self, name, value):
        sizes = positive_sizes(self.name, name, value, (2, 4), "two or four")
        if len(sizes) == 4:
            return sizes
        return (1, 1, *sizes) if self.format == "NCHW" else (1, *sizes, 1)

    def _check_pad(self, pad, pad_mode):
        op = self.name
        check_type(op, "pad", pad, *INTEGER_OR_TUPLE)
        check_type(op, "pad_mode", pad_mode, str, "'str'")
        pads = pad if isinstance(pad, tuple) else (pad,) * 4
        check_integer(op, "pad size", len(pads), "= 4")
        check_choice(op, "pad_mode", pad_mode.lower(), ["valid", "same", "pad"])
        if pad_mode != "pad" and pads != (0, 0, 0, 0):  # upstream, too, does not take "PAD" for "pad" here
            must = "must be zero or (0, 0, 0, 0) when 'pad_mode' is not \"pad\""
            raise ValueError(f"For '{op}', the 'pad' {must}, but got 'pad' is {pad} and 'pad_mode' is {pad_mode}.")
        if pad_mode.lower() == "pad":
            for entry in pads:
                check_integer(op, "pad item", entry, ">= 0")
        return pads

    def _pads(self):
        """(begin, end) of both axes, or "same_upper", or the error message of a call if the list cannot be used."""
        if self.pad_mode != "PAD":
            return "same_upper" if self.pad_mode == "SAME" else ((0, 0), (0, 0))
        pads = self.pad if self.pad_list is None else self.pad_list
        if not isinstance(pads, (tuple, list)):
            return f"pad_list must be a tuple or a list of 4 integers, not {self.pad_list!r}"
        pads = self.pad if -1 in pads else pads
        if len(pads) != 4:
            return f"pad list must be 4D, but got {len(pads)}D!"
        return tuple(pads[:2]), tuple(pads[2:])

    def __repr__(self):
        names = [*inspect.signature(type(self)).parameters, "groups"]
        return f"Prim[{self.name}]<{', '.join(f'{name}={getattr(self, name)}' for name in names)}>"

    def __call__(self, *inputs):
        if len(inputs) != 3:
            raise ValueError(f"{self.name} inputs number {len(inputs)} does not match the requires signature size 3")
        dout, weight, input_size = inputs
        try:
            sizes = whole_numbers("input_size", input_size)
            _check_tensors(self.name, dout, weight)
            options = _options(self._geometry, dout.shape, weight.shape, sizes)
            if options is None:
                return zeros(sizes, dout)
            if isinstance(weight, np.ndarray):  # without its subclass, so that its own methods are not called
                weight = np.ndarray.view(weight, np.ndarray)
            weight = weight.transpose(_ORDERS[self.format])
            if self._geometry.mode == 2:
                return conv(dout, weight, **options)
            if self._geometry.mode == 0:
                weight = weight[:, :, ::-1, ::-1]
            return conv_backward_data(dout, weight, sizes, **options)
        except ValueError as error:
            raise ShapeError(f"For '{self.name}', {error}") from error


class Conv2DTranspose(Conv2DBackpropInput):
    """Transposed convolution, another name of `Conv2DBackpropInput`.

    An operator is called by position, as ``op(dout, weight, input_size)``, and computes the same as
    `Conv2DBackpropInput` with mode 1. It raises the same errors.

    Parameters
    ----------
    out_channel : int
        Channels of dout. It is checked, but the weight's shape decides.
    kernel_size : int or tuple of int
        (kh, kw). It is checked, but the weight's shape decides.
    pad_mode : str
        "valid", "same" (Hout is ``ceil(Hin / stride)``, and the extra element of an odd total is at the end) or "pad".
        Case is ignored.
    pad : int or tuple of int
        Padding under "pad": one number for all sides, or (top, bottom, left, right).
    pad_list : tuple or list of int, optional
        Replaces `pad` under "pad", unless an entry is -1.
    mode : int
        Any integer. It has no effect.
    stride, dilation : int or tuple of int
        One number for both axes, or (h, w), or four numbers in the order of `data_format`. The numbers for N and C
        have no effect.
    group : int
        Number of groups of channels.
    data_format : str
        "NCHW" or "NHWC".

    Notes
    -----
    It follows the documentation of ``mindspore.ops.Conv2DTranspose`` (2.0), and the checks of MindSpore 2.10.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad_cy.shims.mindspore import ops
    >>> dout, weight = np.ones((10, 32, 30, 30), np.float32), np.ones((32, 32, 3, 3), np.float32)
    >>> ops.Conv2DTranspose(out_channel=32, kernel_size=3)(dout, weight, (10, 32, 32, 32)).shape
    (10, 32, 32, 32)
    """

    _uses_mode = False


def _check_tensors(op, dout, weight):
    types = [getattr(tensor, "dtype", None) for tensor in (dout, weight)]
    if not isinstance(types[0], np.dtype):
        raise TensorTypeError(f"For '{op}', dout must be an array, not {type(dout).__name__}")
    if dout.ndim < 4:
        raise ValueError(f"dout.shape must have 4 entries, not {dout.shape}")
    if not isinstance(types[1], np.dtype):
        raise TypeError(f"For '{op}', weight must be an array, not {type(weight).__name__}")
    if types[0] != types[1] and types[0].newbyteorder("=") != types[1].newbyteorder("="):
        shown = f"name:[doutput]:{_shown(types[0])}.\nname:[x]:{_shown(types[1])}."
        raise TypeError(f"For primitive[{op}], the input type must be same.\n{shown}")
    if dtypes.lookup(types[0]) is None:
        allowed = ", ".join(sorted(map(_shown, dtypes.NAMES)))
        must = f"the input argument[doutput] must be a type of {{{allowed}}}"
        raise TypeError(f"For primitive[{op}], {must}, but got {_shown(types[0])}.")


def _shown(dtype):
    """MindSpore's name for the type of a tensor."""
    return f"Tensor[{str(dtype).capitalize().replace('Bf', 'BF').replace('Ui', 'UI')}]"


class _Geometry(NamedTuple):
    """The attributes that a call needs. Lists have the entries for height and width only."""

    format: str
    mode: int
    stride: tuple
    dilation: tuple
    pads: Any
    group: int


@functools.lru_cache(maxsize=256)
def _options(geometry, dout, weight, input_size):
    """The core's keywords for three shapes, or None if no product exists. Shapes that disagree raise ValueError."""
    data_format, mode, stride, dilation, pads, groups = geometry
    order = _ORDERS[data_format]
    y = named("dout.shape", dout, order, 0)
    w = named("weight.shape", weight, order, 1)
    x = named("input_size", input_size, order, 0)
    if isinstance(pads, str) and pads != "same_upper":
        raise ValueError(pads)
    if mode == 3:
        groups = groups if groups > 1 else max(1, x.sizes[1])
        if w.sizes[1] != 1:
            raise ValueError(f"{w.entry(1)} must be 1, for the convolution is depthwise, not {w.sizes[1]}")
    elif mode == 2:
        x, y = y, x  # the gradient of a transposed convolution is a convolution, of dout
    check_channels(groups, x, w, y)
    padding = checked_paddings(stride, dilation, pads, x, w, y)
    if 0 in y.sizes[2:]:
        return None
    keywords = {"stride": stride, "dilation": dilation, "padding": padding}
    return keywords | {"groups": groups, "data_format": data_format, "algorithm": "direct"}


def shape(input_x):
    """The shape of an array.

    Parameters
    ----------
    input_x : array
        An array of NumPy or CuPy.

    Returns
    -------
    tuple of int
        Its extents.
    """
    return input_x.shape


def Tensor(input_data, dtype=None):
    """A new NumPy array, because tensors are arrays here.

    Parameters
    ----------
    input_data : array_like
        The elements.
    dtype : dtype, optional
        Their type. The default is the type that NumPy chooses.

    Returns
    -------
    numpy.ndarray
        A copy of the elements.
    """
    return np.array(input_data, dtype)


float16, float32, float64, int32, int64 = np.float16, np.float32, np.float64, np.int32, np.int64


class dtype:
    """The types under the names that they have in ``mindspore.dtype``."""

    float16, float32, float64, int32, int64 = float16, float32, float64, int32, int64


class ops:
    """The operators under the names that they have in ``mindspore.ops``."""

    Conv2DBackpropInput, Conv2DTranspose = Conv2DBackpropInput, Conv2DTranspose
    shape = staticmethod(shape)
