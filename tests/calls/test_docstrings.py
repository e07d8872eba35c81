"""The docstrings: examples run, all sections exist, and the parts that functions share have the same words."""

import doctest
import inspect
import re

import pytest

import convgrad_cy as cg
from convgrad_cy.shims import cupy_cudnn, mindspore, onednn
from convgrad_cy.shims.tensorflow import raw_ops

FUNCTIONS = [getattr(cg, name) for name in cg.__all__ if name.startswith("conv")]
NAMES = [function.__name__ for function in FUNCTIONS]
#: All public functions, including the ones about threads.
PUBLIC = [getattr(cg, name) for name in cg.__all__ if not name.startswith("_")]
PUBLIC_NAMES = [function.__name__ for function in PUBLIC]
COMMON = {
    "stride": 1,
    "padding": 0,
    "dilation": 1,
    "groups": 1,
    "data_format": "NCX",
    "filter_format": "OIX",
    "algorithm": None,
    "precision": "high",
    "out": None,
}
OUTPUT = {"output_padding": None, "output_shape": None}
SIGNATURES = {
    "conv": (["x", "w"], {}),
    "conv_backward_data": (["dy", "w", "x_shape"], {}),
    "conv_backward_filter": (["x", "dy", "w_shape"], {}),
    "conv_backward": (["dy", "x", "w"], {}),
    "conv_transpose": (["x", "w"], {"output_padding": 0, "output_shape": None}),
    "conv_transpose_backward_data": (["dy", "w"], OUTPUT),
    "conv_transpose_backward_filter": (["x", "dy", "w_shape"], OUTPUT),
    "conv_transpose_backward": (["dy", "x", "w"], OUTPUT),
}
SECTIONS = ("Parameters", "Returns", "Raises", "Examples")
#: Names of other libraries that a reader may search for.
SYNONYMS = ("conv2d_input", "conv2d_weight", "conv2d_backprop_input", "conv2d_backprop_filter", "dgrad", "wgrad")


def sections(function):
    """The numpydoc sections of a docstring: title -> text."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(function), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def parameters(function):
    """Name -> its type and its description."""
    parts = re.split(r"^(\S.*?) : (.*)\n", sections(function)["Parameters"], flags=re.MULTILINE)
    entries = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return {name: (kind, text.strip()) for names, kind, text in entries for name in names.split(", ")}


def test_functions():
    assert sorted(NAMES) == sorted(SIGNATURES)


@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_signature(function):
    """Arrays and shapes must be allowed by position or name, all other arguments by name, with the common defaults."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    keywords = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    arguments, own = SIGNATURES[function.__name__]
    assert positional == arguments
    assert keywords == {**COMMON, **own}
    assert [name for name in keywords if name in COMMON] == list(COMMON), "the common keywords in one order"
    assert len(positional) + len(keywords) == len(parameters)


@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_sections(function):
    found = sections(function)
    assert [name for name in SECTIONS if name not in found] == []
    assert [name for name in found if name in SECTIONS] == list(SECTIONS), "numpydoc's order"
    assert not re.search(r"\{\w+\}", inspect.getdoc(function)), "a placeholder is left"
    summary = inspect.getdoc(function).splitlines()[0]
    assert summary.endswith(".") and len(summary) < 100


@pytest.mark.parametrize("function", PUBLIC, ids=PUBLIC_NAMES)
def test_every_parameter_is_described(function):
    described = parameters(function) if "Parameters" in sections(function) else []
    assert [name.lstrip("*") for name in described] == list(inspect.signature(function).parameters)


def members(module, *names):
    return [getattr(module, name) for name in names or module.__all__]


GRADIENTS = [function for function in FUNCTIONS if "backward" in function.__name__]
TRANSPOSED = [function for function in FUNCTIONS if "transpose" in function.__name__]
BOTH = [cg.conv_backward, cg.conv_transpose_backward]
OPERATIONS = [operation for operation in members(onednn) if hasattr(operation, "schema")]
CUDNN = members(cupy_cudnn, *(name for name in cupy_cudnn.__all__ if name.startswith("conv")))
#: Functions, and the parameters whose descriptions they share.
SHARED = {
    "keywords": (FUNCTIONS, {*COMMON} - {"padding", "out"}),
    "padding": ([function for function in FUNCTIONS if function not in TRANSPOSED], {"padding"}),
    "padding of a transposed convolution": (TRANSPOSED, {"padding"}),
    "out": ([function for function in FUNCTIONS if function not in BOTH], {"out"}),
    "out of two results": (BOTH, {"out"}),
    "output": ([function for function in TRANSPOSED if function in GRADIENTS], {*OUTPUT}),
    "cupy_cudnn": (CUDNN, {"pad", "stride", "dilation", "groups", "auto_tune", "tensor_core", "d_layout", "w_layout"}),
    "tensorflow": (members(raw_ops), {"strides", "padding", "explicit_paddings", "data_format", "dilations", "name"}),
    "onednn": (OPERATIONS, {"strides", "pads_begin", "pads_end", "dilations", "auto_pad", "groups", "data_format"}),
    "mindspore": (
        members(mindspore, "Conv2DBackpropInput", "Conv2DTranspose"),
        {"out_channel", "kernel_size", "pad_mode", "pad", "pad_list", "stride", "dilation", "group", "data_format"},
    ),
}


@pytest.mark.parametrize("functions, names", SHARED.values(), ids=SHARED)
def test_shared_parameters_have_the_same_words(functions, names):
    described = [parameters(function) for function in functions]
    assert len(described) >= 2
    for name in names:
        assert len({each[name] for each in described}) == 1, name


@pytest.mark.parametrize("functions", [FUNCTIONS, CUDNN, members(raw_ops)], ids=["functions", "cupy_cudnn", "raw_ops"])
@pytest.mark.parametrize("section", ["Raises", "Notes"])
def test_shared_sections_have_the_same_words(functions, section):
    """The last paragraph: notes may begin with the function's own."""
    assert len({sections(function)[section].strip().split("\n\n")[-1] for function in functions}) == 1


@pytest.mark.parametrize("both", BOTH, ids=lambda function: function.__name__)
def test_both_gradients_have_the_formulas_of_each(both):
    data, filter = (getattr(cg, f"{both.__name__}_{result}") for result in ("data", "filter"))
    for function, result in ((data, "dx"), (filter, "dw")):
        formula = re.search(rf"^ +{result}\[.*\] = .*$", inspect.getdoc(function), re.MULTILINE)[0]
        assert formula in inspect.getdoc(both)


@pytest.mark.parametrize("function", [*PUBLIC, *CUDNN, *OPERATIONS, *members(raw_ops)], ids=lambda f: f.__name__)
def test_a_star_is_not_read_as_emphasis(function):
    """In reStructuredText, *spatial outside a literal begins emphasis."""
    text = re.sub(r"``.*?``|::\n\n(?: {4}.*\n|\n)+|^\*\*keywords", "", inspect.getdoc(function), flags=re.MULTILINE)
    text = re.sub(r"^(?:>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE)
    assert not re.search(r"(?<![\w*])\*{1,2}\w", text)


@pytest.mark.parametrize("function", PUBLIC, ids=PUBLIC_NAMES)
def test_examples(function):
    tests = doctest.DocTestFinder(recurse=False).find(function, function.__name__)
    assert sum(len(test.examples) for test in tests) >= 3, "no example to run"
    runner = doctest.DocTestRunner(verbose=False)
    report = []
    for test in tests:
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_synonyms():
    """A reader who knows an operation by another library's name must find it in the documentation."""
    text = " ".join(inspect.getdoc(function) for function in FUNCTIONS)
    assert [name for name in SYNONYMS if name not in text] == []
