"""The documentation of the functions: examples run, all sections exist, and the keywords are the same."""

import doctest
import inspect
import re

import pytest

import convgrad_cy as cg

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
    described = []
    for line in sections(function).get("Parameters", "").splitlines():
        match = re.fullmatch(r"\*{0,2}([a-z_]+(?:, [a-z_]+)*) : .+", line)
        if match:
            described += match.group(1).split(", ")
    assert sorted(described) == sorted(inspect.signature(function).parameters)


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
