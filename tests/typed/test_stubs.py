"""The stubs without a type checker: each overload has the arguments and defaults of the function, in its order.

stubtest does not compare the defaults of overloads.
"""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import convgrad_cy
from convgrad_cy import typing as types
from convgrad_cy.checks import keywords
from convgrad_cy.settings.algorithm import DEFAULTS

PACKAGE = Path(convgrad_cy.__file__).parent


def overloads():
    """(module, function, its node) of each overload in the stubs of modules that need only NumPy."""
    for path in sorted(PACKAGE.rglob("*.pyi")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(ast.unparse(one) == "overload" for one in node.decorator_list):
                yield ".".join(parts), node


OVERLOADS = list(overloads())


def defaults_of(node):
    """Name -> the text of its default, or None if it must be given, in the order of the arguments."""
    positional = [*node.args.posonlyargs, *node.args.args]
    given = [None] * (len(positional) - len(node.args.defaults)) + node.args.defaults + node.args.kw_defaults
    names = [argument.arg for argument in [*positional, *node.args.kwonlyargs]]
    return {name: value and ast.unparse(value) for name, value in zip(names, given, strict=True)}


def test_overloads_are_found():
    functions = {node.name for _, node in OVERLOADS}
    assert {name for name in convgrad_cy.__all__ if name.startswith("conv")} < functions


@pytest.mark.parametrize("module, node", OVERLOADS, ids=[f"{node.name}-{i}" for i, (_, node) in enumerate(OVERLOADS)])
def test_overload_has_the_arguments_and_defaults(module, node):
    parameters = inspect.signature(getattr(import_module(module), node.name)).parameters.values()
    named = [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    expected = {each.name: None if each.default is each.empty else repr(each.default) for each in named}
    assert list(defaults_of(node).items()) == list(expected.items())


def test_one_overload_for_each_library():
    libraries = ["NDArray[_Scalar]", "_CuPy", "_JAX", "_Tensor"]
    for name in (name for name in convgrad_cy.__all__ if name.startswith("conv")):
        results = sorted(ast.unparse(node.returns) for _, node in OVERLOADS if node.name == name)
        pairs = [f"tuple[{library}, {library}]" for library in libraries]
        assert results == (pairs if name.endswith("backward") else libraries)


def test_keywords():
    assert list(types.Keywords.__annotations__) == list(keywords.Options._fields)
    own = set(types.TransposedKeywords.__annotations__) - set(types.Keywords.__annotations__)
    assert own == {"output_padding", "output_shape"}


def both_cases(tables):
    names = {name for table in tables.values() for name in table}
    return names | {name.lower() for name in names}


def test_names():
    assert set(get_args(types.DataFormat)) == both_cases(keywords.DATA_ORDERS)
    assert set(get_args(types.FilterFormat)) == both_cases(keywords.FILTER_ORDERS)
    assert get_args(types.Algorithm) == tuple(keywords.ALGORITHMS)
    assert get_args(types.Precision) == tuple(keywords.PRECISIONS)
    assert get_args(types.DefaultAlgorithm) == tuple(DEFAULTS)
    *_, named = get_args(types.Padding)
    expected = keywords._named_paddings(1)
    assert set(get_args(named)) == {*expected, *(name.upper() for name in expected)}
