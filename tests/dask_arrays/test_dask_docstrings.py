"""The documentation of the functions on Dask arrays: examples run, sections exist, keywords equal the core's."""

import doctest
import inspect
import re

import pytest

import convgrad_cy as cg

pytestmark = pytest.mark.dask

NAMES = ("conv", "conv_backward_data", "conv_backward_filter")


@pytest.fixture(params=NAMES)
def function(request):
    import convgrad_cy.dask as cd

    assert sorted(NAMES) == sorted(cd.__all__)
    return getattr(cd, request.param)


def test_signature(function):
    """The parameters must be the core's, without ``out``, because results are lazy."""
    core = dict(inspect.signature(getattr(cg, function.__name__)).parameters)
    del core["out"]
    assert dict(inspect.signature(function).parameters) == core


def test_sections(function):
    text = inspect.getdoc(function)
    titles = re.findall(r"^(\w[\w ]*)\n-{3,}$", text, re.MULTILINE)
    assert titles == ["Parameters", "Returns", "Raises", "Notes", "Examples"]
    assert "::\n\n    " in text, "the formula is missing"
    assert not re.search(r"\{\w+\}", text), "a placeholder is left"
    described = ", ".join(re.findall(r"^([a-z_, ]+) : ", text, re.MULTILINE)).split(", ")
    assert sorted(described) == sorted(inspect.signature(function).parameters)


def test_examples(function):
    (tests,) = doctest.DocTestFinder(recurse=False).find(function, function.__name__)
    runner, report = doctest.DocTestRunner(verbose=False), []
    runner.run(tests, out=report.append)
    assert tests.examples and runner.summarize(verbose=False).failed == 0, "".join(report)
