"""Sections that the docstrings of all functions share."""

import re
from inspect import cleandoc
from textwrap import indent

_SECTIONS = {
    "keywords": """stride, dilation : int or sequence of int
        One value, or one for each spatial axis; at least 1. A sequence has a length and is indexed: a tuple, a list, a
        range, an array of one axis, the shape type of another library.
    padding : int, sequence or str
        One int, or for each spatial axis one int or one (begin, end) pair, such as ((2, 0),) for a causal 1-D
        convolution. "valid": no padding. "same" or "same_upper": the output's extent is ceil(input / stride), or
        input * stride if transposed, and an odd element of padding is at the end. "same_lower": an odd element is at
        the beginning. Names may be in any case. Padding of a transposed convolution crops its output.
    groups : int
        Number of independent convolutions, each with an equal share of the channels.
    data_format : str
        "NCX" (the shapes given here), "NXC" (channels last), or the spelling for a number of axes, such as "NHWC"; in
        any case.
    filter_format : str
        "OIX" (the shapes given here), "XIO" (spatial axes first, output channels last), or the spelling for a number of
        axes, such as "HWIO"; in any case.
    algorithm : str, optional
        "auto": the algorithm with the lowest predicted time. In float32, float16 and bfloat16 this may be Winograd's.
        The error of every element is then at most 2e-5 times the largest magnitude in the result, so small elements can
        lose all digits, and subnormal bfloat16 may count as zero. float64 and int32 are always computed directly.
        "direct": each element is the sum of its own products, and an item has the same bits alone and in a batch.
        "winograd": Winograd's algorithm, on a CPU only.
        The default is the setting of `set_default_algorithm`, which is "auto" at first.
    precision : str
        Products of float32 on a GPU. "ieee": float32 products. "high": bfloat16 products that are as exact together.
        "medium": fewer bfloat16 products, exact to 1e-5 of the result's largest element. A CPU always computes "ieee".
    out : array, optional
        Receives the result. It has the result's shape and dtype, and shares no memory with the inputs. Functions with
        two results accept a pair, whose entries are arrays or None. jax.Array is immutable, so it is not accepted.""",
    "output": """output_padding : int or sequence of int, optional
        The keyword of `conv_transpose`. `dy` must have the resulting shape. By default the shapes decide.
    output_shape : sequence of int, optional
        The keyword of `conv_transpose`: the shape of `dy`.""",
    "errors": """Raises
    ------
    TypeError
        An argument has the wrong type, an array has an unsupported dtype, or arrays differ in dtype or device.
    ValueError
        A shape, size or keyword is impossible, or `out` cannot be written.
    MemoryError
        There is too little memory. On a CPU the message names the function and the result's shape and dtype. `out` is
        unchanged after this and the two errors above.
    Exception
        An exception of a signal handler, such as KeyboardInterrupt. A call of Python's main thread handles signals ten
        times a second. The content of `out` is undefined afterwards.

    See Also
    --------
    conv, conv_backward_data, conv_backward_filter, conv_backward
    conv_transpose, conv_transpose_backward_data, conv_transpose_backward_filter, conv_transpose_backward""",
    "dtypes": """All arrays are numpy.ndarray, or torch.Tensor, or jax.Array on a CPU, or cupy.ndarray on one GPU, and
    the result has the same type. No gradients are recorded. All arrays have one dtype: float16, bfloat16 (of ml_dtypes
    in numpy.ndarray), float32, float64 or int32. Inputs may have any byte order; `out` and results have the machine's.
    float16 and bfloat16 are summed in float32 and rounded once. int32 wraps. The same inputs give the same bits for any
    number of threads.""",
}


def inserted(docstring, name, text):
    """Replace ``{name}``, which is alone on its line, by ``text`` with the same indentation.

    The indentation depends on Python: from 3.13 on, the compiler removes the common part.
    """
    return re.sub(rf"( *){{{name}}}", lambda found: indent(cleandoc(text), found[1]), docstring)


def documented(function):
    """Insert the shared sections into the docstring of a function."""
    for name, text in _SECTIONS.items():
        function.__doc__ = function.__doc__ and inserted(function.__doc__, name, text)
    return function
