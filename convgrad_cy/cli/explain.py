"""``python -m convgrad_cy explain``: the plan of a call."""

import argparse
import json
import re

from .. import dtypes
from ..checks.keywords import ALGORITHMS, PRECISIONS
from ..explanation import FUNCTIONS
from . import layer, output
from .problem_text import LETTERS, parse

#: Function with several results -> the functions that compute one of them each.
SEVERAL = {
    "conv_backward": ("conv_backward_data", "conv_backward_filter"),
    "conv_transpose_backward": ("conv_transpose_backward_data", "conv_transpose_backward_filter"),
}
#: Options that describe a layer together with --x. They have their own letters in --problem.
_LETTERED = ("w", "stride", "padding", "dilation", "groups", "output_padding")
_KEYWORDS = (*_LETTERED[1:], "data_format", "filter_format", "algorithm", "precision")

DESCRIPTION = """\
Print the kernels that a call would run on this machine's CPU, and why others are rejected.

The layer y = conv(x, w) or y = conv_transpose(x, w) is described once, whichever of its functions is explained. The
report begins with the layer as it was understood. With --json it is an object, or a list of two for conv_backward and
conv_transpose_backward, which have two results.
"""
EPILOG = f"""\
the letters of --problem, each followed by a number (the value of a missing letter is in brackets):
{LETTERS}

A missing letter for w is taken from h, and one for h from d. The letters mean what oneDNN's benchdnn means: --conv for
conv and its gradients, --deconv for conv_transpose and its gradients, where ic and ih belong to the input of the
transposed convolution, and oc and oh to its result.

examples:
  convgrad_cy explain conv --x 8,64,56,56 --w 128,64,3,3 --stride 2 --padding 1
  convgrad_cy explain conv_backward --x 8,56,56,64 --w 3,3,64,64 --padding same --data-format NHWC --filter-format HWIO
  convgrad_cy explain conv_transpose --problem mb8ic64ih28oc32kh4sh2ph1
"""


class BadProblem(ValueError):
    """The options describe no problem, or a problem that the function refuses."""


def _numbers(text, such_as):
    if not re.fullmatch("[0-9]+(,[0-9]+)*", text):
        raise argparse.ArgumentTypeError(f"must be whole numbers such as {such_as}, not {text!r}")
    return tuple(int(number) for number in text.split(","))


def shape(text):
    """Parse a shape."""
    return _numbers(text, "8,64,56,56")


def per_axis(text):
    """Parse one number, or one for each spatial axis."""
    numbers = _numbers(text, "2 or 2,1")
    return numbers if len(numbers) > 1 else numbers[0]


def padding(text):
    """Parse one number, a number or begin:end for each spatial axis, or a name, which the functions check."""
    if re.fullmatch("[A-Za-z_]+", text):
        return text
    if ":" not in text:
        return per_axis(text)
    sides = [part.split(":") for part in text.split(",")]
    if not all(re.fullmatch("[0-9]+", number) for pair in sides for number in pair):
        raise argparse.ArgumentTypeError(f"must be 1, 1,2, 0:1,1:1, same or valid, or the like, not {text!r}")
    return tuple(tuple(map(int, pair)) if len(pair) > 1 else int(pair[0]) for pair in sides)


def add_arguments(command):
    """Add the arguments of the command."""
    command.description, command.epilog = DESCRIPTION, EPILOG
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    choices = tuple(dict.fromkeys([*FUNCTIONS, *SEVERAL]))
    command.add_argument("function", metavar="FUNCTION", choices=choices, help=f"one of {', '.join(choices)}")
    group = command.add_argument_group("the layer, in letters or in shapes and keywords")
    source = group.add_mutually_exclusive_group(required=True)
    source.add_argument("--problem", metavar="TEXT", help="all of it in letters, such as mb8ic64ih56oc64kh3ph1")
    source.add_argument("--x", metavar="SHAPE", type=shape, help="the shape of the layer's input, such as 8,64,56,56")
    group.add_argument("--w", metavar="SHAPE", type=shape, help="the shape of its filter, such as 64,64,3,3")
    for name in ("stride", "dilation"):
        group.add_argument(f"--{name}", metavar="N[,N..]", type=per_axis, help="for all axes or for each one (1)")
    group.add_argument(
        "--padding", metavar="P", type=padding, help="1, 1,2, 0:1,1:1 (begin:end), same, same_lower or valid (0)"
    )
    group.add_argument("--groups", metavar="N", type=int, help="(1)")
    group.add_argument(
        "--output-padding", metavar="N[,N..]", type=per_axis, help="of conv_transpose, for all axes or for each one (0)"
    )
    group = command.add_argument_group("keywords that have no letters")
    group.add_argument("--data-format", metavar="NCX", help="of x and y: NCX, NXC or the like, NHWC too (NCX)")
    group.add_argument("--filter-format", metavar="OIX", help="of w: OIX, XIO or the like, HWIO too (OIX)")
    group.add_argument("--algorithm", choices=ALGORITHMS, help="(the default of the process)")
    group.add_argument("--precision", choices=PRECISIONS, help="of float32 on a GPU; no CPU asks for it (high)")
    command.add_argument("--dtype", choices=dtypes.NAMES, default="float32", help="(%(default)s)")
    command.add_argument("--json", action="store_true", help="print an object, not a report")


def _layer(options):
    """The layer that the options describe."""
    forward = "conv_transpose" if options.function.startswith("conv_transpose") else "conv"
    keywords = {name: getattr(options, name) for name in _KEYWORDS if getattr(options, name) is not None}
    if options.problem is None:
        if options.w is None:
            raise BadProblem("argument --w must be given with --x")
        return layer.of_shapes(forward, options.x, options.w, options.dtype, keywords)
    for name in _LETTERED:
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise BadProblem(f"argument {option} must be left out with --problem, which says the same in letters")
    try:
        problem = parse(options.problem, forward == "conv_transpose")
    except ValueError as error:
        raise BadProblem(f"argument --problem: {error}") from error
    return layer.of_problem(forward, problem, options.dtype, keywords)


def explained(options):
    """Return the layer that the options describe, and an explanation for each result of the function."""
    try:
        found = _layer(options)
        functions = SEVERAL.get(options.function, (options.function,))
        return found, [found.explained(function, options.dtype) for function in functions]
    except BadProblem:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise BadProblem(str(error)) from error


def print_explanation(options):
    """Run the command."""
    found, explanations = explained(options)
    if options.json:
        objects = [{**each._asdict(), "layer": found.described()} for each in explanations]
        output.line(json.dumps(objects if len(objects) > 1 else objects[0], indent=2))
    else:
        output.line("\n\n".join(map(str, [found, *explanations])))
