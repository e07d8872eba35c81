"""The sections that the docstrings of the functions have in common."""

import re
from inspect import cleandoc
from textwrap import indent

_SECTIONS = {
    "keywords": """stride, dilation : int or sequence of int
        One value, or one for each spatial axis; at least 1. A sequence is what has a length and is indexed: a tuple, a
        list, a range, an array of one axis, another library's shape.
    padding : int, sequence or str
        One int, or for each spatial axis one int or one (begin, end) pair, as ((2, 0),) of a causal 1-D convolution;
        "valid": none; "same" or "same_upper": the output's extent is ceil(input / stride), or input * stride if
        transposed, and an odd element of padding is at the end; "same_lower": it is at the beginning. In any case.
        Padding of a transposed convolution crops its output.
    groups : int
        Convolutions side by side, each with its share of the channels.
    data_format : str
        "NCX" (the shapes given here), "NXC" (channels last), or this rank's spelling of one, such as "NHWC"; in any
        case.
    filter_format : str
        "OIX" (the shapes given here), "XIO" (spatial axes first, output channels last), or this rank's spelling of
        one, such as "HWIO"; in any case.
    algorithm : str, optional
        "auto": the faster one, whose error may be 2e-5 of the greatest element of the result (not in float64 and
        int32), also in elements that do not depend on what made that one so great, and which may take subnormal
        bfloat16 for zero; "direct": the sums of the definition, in which an item of the batch has the bits that it has
        alone (with "auto" the batch may decide what is faster); "winograd": fewer products in float32, with that error;
        on a CPU. By default what `set_default_algorithm` says, which is "auto" at first.
    precision : str
        Of float32 on a GPU. "ieee": its own products; "high": bfloat16 products that are as exact together;
        "medium": fewer of them, exact to 1e-5 of the result's greatest element. A CPU always computes "ieee".
    out : array, optional
        Takes the result. Shape and dtype must be the result's; no memory may be shared with the inputs. The functions
        with two results take a pair, each entry an array or None. Not with jax.Array, which is immutable.""",
    "output": """output_padding : int or sequence of int, optional
        The one of `conv_transpose`. `dy` must have the shape that it leads to. By default the shapes decide.
    output_shape : sequence of int, optional
        The one of `conv_transpose`: the shape of `dy`.""",
    "errors": """Raises
    ------
    TypeError
        An argument of the wrong type, an array of another dtype than those listed, or arrays of two dtypes or devices.
    ValueError
        A shape, size or keyword that is impossible, or an `out` that cannot be written.
    MemoryError
        There is too little memory; on a CPU it names the function, and its result's shape and dtype. As with the other
        two, `out` is as it was.
    Exception
        What a signal handler raises, such as KeyboardInterrupt. A call of Python's main thread handles signals ten
        times a second. What is in `out` is then undefined.

    See Also
    --------
    conv, conv_backward_data, conv_backward_filter, conv_backward
    conv_transpose, conv_transpose_backward_data, conv_transpose_backward_filter, conv_transpose_backward""",
    "dtypes": """All arrays are numpy.ndarray, or torch.Tensor, or jax.Array on a CPU, or cupy.ndarray on one GPU; the
    result is what they are. No gradients are recorded. All have one dtype: float16, bfloat16 (of ml_dtypes in
    numpy.ndarray), float32, float64 or int32; inputs may have any byte order, `out` and results have the machine's.
    The two half types are summed in float32 and rounded once; int32 wraps. The same inputs give the same bits, for any
    number of threads.""",
}


def inserted(docstring, name, text):
    """The docstring with ``text`` in the place of ``{name}``, which stands on a line alone, as far indented as that.

    How far that is depends on Python: from 3.13 on, the compiler takes the common indentation away.
    """
    return re.sub(rf"( *){{{name}}}", lambda found: indent(cleandoc(text), found[1]), docstring)


def documented(function):
    """Put the sections that all have in common into a docstring."""
    for name, text in _SECTIONS.items():
        function.__doc__ = function.__doc__ and inserted(function.__doc__, name, text)
    return function
