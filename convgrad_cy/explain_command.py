"""``python -m convgrad_cy explain``: how a call would be computed."""

import json

import convgrad_cy as cg
from convgrad_cy import dtypes, report
from convgrad_cy.explanation import FUNCTIONS
from convgrad_cy.problem_text import parse


class BadProblem(ValueError):
    """What was asked for is no problem, or one that the function refuses."""


def add_arguments(command):
    """The arguments of the command."""
    command.add_argument("function", choices=FUNCTIONS, help="the function that would be called")
    command.add_argument(
        "--problem",
        metavar="TEXT",
        required=True,
        help="the convolution in the syntax of benchdnn, such as mb8ic64ih56oc64kh3ph1; a transposed one is described "
        "by the convolution whose data gradient it is",
    )
    command.add_argument("--dtype", choices=dtypes.NAMES, default="float32", help="(%(default)s)")
    command.add_argument("--data-format", choices=("NCX", "NXC"), default="NCX", help="(%(default)s)")
    command.add_argument("--filter-format", choices=("OIX", "XIO"), default="OIX", help="(%(default)s)")
    command.add_argument("--algorithm", choices=("auto", "direct", "winograd"), help="(that of calls that name none)")
    command.add_argument("--json", action="store_true", help="print an object, not a report")


def _ordered(shape, is_filter, options):
    if is_filter:
        return (*shape[2:], shape[1], shape[0]) if options.filter_format == "XIO" else shape
    return (shape[0], *shape[2:], shape[1]) if options.data_format == "NXC" else shape


def explained(options):
    """The explanation of what the command's options describe."""
    try:
        problem = parse(options.problem)
    except (KeyError, ValueError) as error:
        raise BadProblem(f"--problem: {error}") from error
    x, w, y = (
        _ordered(shape, is_filter, options)
        for shape, is_filter in ((problem.x_shape, False), (problem.w_shape, True), (problem.y_shape, False))
    )
    shapes, asked = {
        "conv": ((x, w), {}),
        "conv_backward_data": ((y, w), {"x_shape": x}),
        "conv_backward_filter": ((x, y), {"w_shape": w}),
        "conv_transpose": ((y, w), {"output_shape": x}),
        "conv_transpose_backward_data": ((x, w), {}),
        "conv_transpose_backward_filter": ((y, x), {"w_shape": w}),
    }[options.function]
    formats = {"data_format": options.data_format, "filter_format": options.filter_format}
    keywords = {**problem.keywords, **formats, "algorithm": options.algorithm, **asked}
    try:
        return cg.explain(options.function, shapes, options.dtype, **keywords)
    except (TypeError, ValueError, MemoryError) as error:
        raise BadProblem(str(error)) from error


def print_explanation(options):
    found = explained(options)
    report.line(json.dumps(found._asdict(), indent=2) if options.json else str(found))
