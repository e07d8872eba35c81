"""The allowed imports, read from the source: data moves one way through the package."""

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "convgrad_cy"

#: Module -> the modules that it may import, as names below convgrad_cy ("" is the package itself). A folder stands for
#: all its modules without a line of their own, which may import each other. A new line is a decision about the design.
ALLOWED = {
    "__main__": {"cli"},
    "cli": {
        *("", "_repeat", "atomic_file", "checks.keywords", "cpu", "dtypes", "explanation", "gpu", "problem"),
        *("settings", "shims"),
        *("jax", "torch"),  # the check, inside functions
    },
    "shims": {"", "api", "arrays", "checks", "checks.keywords", "dtypes", "problem"},
    "dask": {"api", "arrays", "blocks", "calls", "checks", "checks.keywords", "dtypes", "problem"},
    "blocks": {"api", "arrays", "calls", "checks", "cpu", "dtypes", "problem", "settings"},
    "jax": {"_repeat", "_xla_ffi", "arrays", "calls", "checks", "cpu", "dtypes", "memo", "settings"},
    "torch": {
        *("", "_aten", "_repeat", "arrays", "atomic_file", "calls", "checks", "cpu", "gpu", "memo", "problem"),
        "settings",
    },
    "": {"api", "explanation", "settings"},
    "explanation": {"arrays", "calls", "checks", "checks.keywords", "cpu"},
    "api": {"calls", "checks"},
    "calls": {"_repeat", "arrays", "checks", "cpu", "dtypes", "gpu", "memo", "problem", "settings"},
    "checks": {"arrays", "checks.keywords", "dtypes", "problem", "settings"},
    "arrays": {"_aten", "_repeat", "dtypes"},
    "gpu": {"atomic_file", "dtypes", "memo", "problem"},
    # The families.
    "cpu": {
        *("cpu.direct", "cpu.long_sums", "cpu.small_groups", "cpu.winograd"),
        *("cpu.rewrites", "cpu.rewrites.columns", "cpu.rewrites.exchanged"),
        *("cpu.machine", "cpu.plan", "problem", "settings"),
    },
    # These rewrites ask how long the kernels of the task itself would take.
    "cpu.rewrites.columns": {
        *("_repeat", "cpu.machine", "cpu.plan", "cpu.rewrites", "cpu.rewrites.dgrad_costs", "cpu.small_groups"),
        *("cpu.winograd", "problem"),
    },
    "cpu.rewrites.exchanged": {
        *("cpu.direct", "cpu.plan", "cpu.rewrites", "cpu.rewrites.dgrad_costs", "cpu.small_groups", "problem"),
    },
    "cpu.rewrites.dgrad_costs": {"cpu.direct", "cpu.plan"},
    "cpu.long_sums": {"cpu.plan", "cpu.rewrites", "cpu.small_groups", "problem"},
    "cpu.winograd": {"cpu.machine", "cpu.plan", "cpu.rewrites", "cpu.small_groups", "memo", "problem"},
    "cpu.small_groups": {"cpu.direct", "cpu.machine", "cpu.plan", "cpu.rewrites", "memo", "problem"},
    "cpu.direct": {"cpu.machine", "cpu.plan", "cpu.rewrites", "memo", "problem"},
    "cpu.rewrites": {"_repeat", "cpu.machine", "cpu.plan", "dtypes", "problem"},
    "cpu.plan": {"_repeat", "arrays", "cpu.machine", "memo", "problem"},
    "cpu.machine": {"_cpu_features", "_kernels", "memo", "settings"},
    "settings": {"_repeat", "checks.keywords", "memo", "problem"},
    "checks.keywords": {"problem"},
    "problem": {"phases"},
    "phases": set(),
    "atomic_file": set(),
    "typing": set(),  # for users' programs
    "dtypes": set(),
    "memo": set(),
}
#: Imports of a module in addition to the standard library and NumPy. All are inside a function, never at import.
OPTIONAL = {
    "gpu": {"cupy", "cupyx"},
    "arrays": {"cupy", "ml_dtypes"},  # for PyTorch's tensors on a GPU
    "cli": {"cupy", "jax", "matplotlib", "ml_dtypes", "torch"},
    "torch": {"cupy"},  # for tensors on a GPU
}
#: Imports of a module at its own import. Nobody else imports such a module.
ENTRANCES = {"torch": {"torch"}, "jax": {"jax"}, "dask": {"dask"}}
#: Scripts that are not part of the running package: this one makes a data file that is checked in.
SCRIPTS = {PACKAGE / "data" / "make_digits.py"}
#: Files of more than 400 lines, and the reason for each.
LONG = {"tests/calls/test_arguments.py": "a table: one rejected call and its message on each line"}
BANNED = re.compile(r"(^|_)(utils?|helpers?|common|misc)(_|$)")
SOURCES = (".py", ".pyx", ".pxd", ".c", ".h", ".cu", ".cuh")
FOLDERS = ("convgrad_cy", "pyx", "tests", "bench")

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path not in SCRIPTS)


def module_of(path):
    """'convgrad_cy.gpu.module' for its file, and 'convgrad_cy' for __init__.py."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit_of(module):
    """The key of ALLOWED that a module of the package belongs to: the longest one."""
    parts = module.split(".")[1:]
    keys = [".".join(parts[: i + 1]) for i in range(len(parts))]
    name = next((key for key in reversed(keys) if key in ALLOWED), keys[0] if keys else "")
    return "_kernels" if name.startswith("_kernels_") else name


def imports(tree, module, is_package):
    """(absolute name of an import, whether it happens when the module itself is imported)."""
    lazy = {
        node
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node not in lazy
        elif isinstance(node, ast.ImportFrom):
            here = module.split(".") if is_package else module.split(".")[:-1]
            base = here[: len(here) + 1 - node.level] if node.level else []
            source = ".".join([*base, node.module] if node.module else base)
            for alias in node.names:
                yield f"{source}.{alias.name}", node not in lazy


def resolved(name):
    """A dotted name cut back to the module that holds it, if this is one of the package."""
    parts = name.split(".")
    while len(parts) > 1:
        path = PACKAGE.parent.joinpath(*parts)
        if path.with_suffix(".py").exists() or path.is_dir() or unit_of(".".join(parts)).startswith("_"):
            break
        parts.pop()
    return ".".join(parts)


def violations(source, path):
    """The imports of a module that break the rules."""
    module = module_of(path)
    unit = unit_of(module)
    if unit not in ALLOWED:
        return [f"{module} has no line in ALLOWED"]
    found = []
    for name, at_import in imports(ast.parse(source), module, path.name == "__init__.py"):
        top = name.partition(".")[0]
        if top == "convgrad_cy":
            target = unit_of(resolved(name))
            if target != unit and target not in ALLOWED[unit]:
                found.append(f"{module} imports {name}")
        elif top != "numpy" and top not in sys.stdlib_module_names:
            if top in ENTRANCES.get(unit, ()):
                continue
            if top not in OPTIONAL.get(unit, ()):
                found.append(f"{module} imports {name}")
            elif at_import:
                found.append(f"{module} imports {name} when it is imported itself")
    return found


@pytest.mark.parametrize("path", MODULES, ids=module_of)
def test_only_allowed_imports(path):
    assert violations(path.read_text(), path) == []


@pytest.mark.parametrize(
    "file, source",
    [
        ("problem.py", "from .dtypes import lookup"),
        ("problem.py", "from . import dtypes"),
        ("cpu/machine/caches.py", "import convgrad_cy.api"),
        ("cpu/direct/plan.py", "def f():\n    from convgrad_cy import cpu"),
        ("cpu/machine/__init__.py", "from ..direct import plan"),
        ("checks/geometry.py", "from ..cpu.winograd import tilings"),
        ("shims/tensorflow.py", "from ..cpu import dgrad"),
        ("shims/tensorflow.py", "import tensorflow"),
        ("api/__init__.py", "import cupy"),
        ("api/__init__.py", "def f():\n    from .. import torch"),
        ("torch/module.py", "import cupy"),
        ("blocks/axes.py", "import dask"),
        ("arrays/of_torch.py", "def f():\n    import torch"),
        ("arrays/of_jax.py", "def f():\n    import jax"),
        ("gpu/module.py", "import cupy"),
        ("anything.py", "import numpy"),
    ],
)
def test_forbidden_imports_are_seen(file, source):
    assert violations(source, PACKAGE / file)


def test_allowed_imports_pass():
    source = "import os\nimport numpy as np\nfrom .. import dtypes\nfrom ..problem import ConvProblem"
    assert violations(source, PACKAGE / "checks" / "geometry.py") == []


def cycle(graph):
    """The nodes of a cycle, with the first one repeated at the end, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_cycle():
    """There must be no cycle among the modules, nor among the allowed imports."""
    graph = {}
    for path in MODULES:
        module = module_of(path)
        names = imports(ast.parse(path.read_text()), module, path.name == "__init__.py")
        targets = {resolved(name) for name, _ in names if name.partition(".")[0] == "convgrad_cy"}
        graph[module] = {target for target in targets if target != module}
    assert cycle(graph) is None
    assert cycle(ALLOWED) is None
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == {"b", "c"}


def sources():
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES]


def test_module_names():
    assert [str(path) for path in sources() if BANNED.search(path.stem)] == []
    assert BANNED.search("utils") and BANNED.search("array_helpers") and not BANNED.search("commonplace")


def test_no_long_file():
    """No source file may have more than 400 lines, unless it is a table."""
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources()}
    assert {name for name, length in lengths.items() if length > 400} == set(LONG)
