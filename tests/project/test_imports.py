"""Who may import whom, read from the source: data moves one way through the package."""

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "convgrad_cy"

#: Those of cpu/families.py.
_NAMES = ("columns", "direct", "exchanged", "long_sums", "overlaps", "patches", "small_groups", "winograd")
FAMILIES = {f"cpu.{name}" for name in _NAMES}
#: What families import that bring arrays into another order.
_COPYING = {"arrays", "cpu.layouts", "cpu.reasons", "cpu.scratch", "problem"}
#: What both families import that form the sum as the definition has it.
_OF_SUMS = {"bounded", "problem"} | {
    f"cpu.{name}" for name in ("cache", "case", "job", "machines", "shared", "steps", "task", "tile", "views")
}
#: Module -> the modules that it may import, as names below convgrad_cy ("" is the package itself). A folder stands for
#: all its modules without a line of their own, which may import each other. A new line is a decision about the design.
ALLOWED = {
    "": {"api", "both", "default_algorithm", "explanation", "scratch_limit", "threads"},
    "__main__": {"", "demo", "explain_command", "info", "operations", "report", "run_file"},
    "explain_command": {"dtypes", "explanation", "keywords", "layer", "problem_text", "report"},
    "layer": {"", "keywords"},
    "demo": {"", "report", "whole_file"},
    "info": {"", "cpu", "dtypes", "gpu", "problem", "report", "without_openmp", "_repeat"},
    "run_file": {"operations", "report", "whole_file", "_repeat"},
    "report": set(),
    "whole_file": set(),
    "operations": {"", "shims"},
    "shims": {"", "api", "arguments", "arrays", "documentation", "dtypes", "keywords", "problem", "shapes"},
    "api": {"arguments", "calls", "documentation"},
    "both": {"arguments", "calls", "documentation"},
    "explanation": {"arguments", "arrays", "calls", "cpu", "keywords", "prepared", "untouched"},
    "untouched": {"arrays", "dtypes", "keywords"},
    "problem_text": set(),
    "calls": {"arguments", "arrays", "bounded", "cpu", "default_algorithm", "prepared", "_repeat"},
    "prepared": {"arrays", "cpu", "dtypes", "gpu", "problem", "_repeat"},
    "arguments": {"arrays", "dtypes", "geometry", "keywords"},
    "geometry": {"default_algorithm", "keywords", "shapes", "dtypes", "problem"},
    "bounded": {"locks"},
    "locks": set(),
    "default_algorithm": {"keywords"},
    "scratch_limit": {"default_algorithm", "keywords", "problem"},
    "keywords": {"problem"},
    "shapes": {"problem", "keywords"},
    "arrays": {"_aten", "_repeat", "dtypes"},
    "cpu": {f"cpu.{name}" for name in ("details", "families", "kernels", "reached", "task", "winograd", "zeros")}
    | {"without_openmp"},
    "cpu.details": FAMILIES - {"cpu.small_groups"}
    | {"cpu.direct.boxes", "cpu.families", "cpu.layouts", "cpu.shared", "cpu.steps", "problem"},
    "cpu.families": FAMILIES,
    "cpu.columns": _COPYING | {"cpu.dgrad_costs", "cpu.kernels", "cpu.machines", "cpu.winograd"},
    "cpu.dgrad_costs": set(),
    "cpu.long_sums": _COPYING | {"cpu.exchanged", "cpu.kernels", "cpu.plan_checks", "_repeat"},
    "cpu.exchanged": _COPYING | {"cpu.dgrad_costs", "cpu.direct", "cpu.patches", "cpu.small_groups", "cpu.task"},
    "cpu.overlaps": _COPYING,
    "cpu.patches": _COPYING,
    "cpu.winograd": {
        "arrays",
        "bounded",
        "cpu.cache",
        "cpu.cuts",
        "cpu.job",
        "cpu.layouts",
        "cpu.machines",
        "cpu.reasons",
        "cpu.scratch",
        "cpu.shared",
        "cpu.small_groups",
        "cpu.steps",
        "cpu.tile",
        "cpu.walks",
        "problem",
    },
    "cpu.small_groups": _OF_SUMS | {"cpu.direct", "cpu.direct.boxes", "cpu.reasons"},
    "cpu.direct.boxes": {"cpu.machines", "cpu.steps", "problem"},
    "cpu.direct": _OF_SUMS | {"cpu.cuts", "cpu.direct.boxes", "cpu.once", "cpu.patches"},
    "cpu.layouts": {"arrays", "cpu.kernels", "dtypes"},
    "cpu.reached": {"cpu.layouts", "problem"},
    "cpu.job": {"cpu.kernels", "cpu.plan_checks", "cpu.task", "_repeat"},
    "cpu.plan_checks": {"cpu.shared", "cpu.steps", "problem"},
    "cpu.task": {"cpu.machines", "problem"},
    "cpu.case": {"cpu.cache", "cpu.machines", "cpu.once", "cpu.scratch", "cpu.walks", "problem"},
    "cpu.scratch": {"cpu.cache", "cpu.reasons"},
    "cpu.shared": {"cpu.machines"},
    "cpu.reasons": set(),
    "cpu.zeros": set(),
    "cpu.kernels": {"cpu.cache", "cpu.machines", "cpu.processor", "cpu.tuning", "scratch_limit", "threads"}
    | {"_cpu_features", "_kernels"},
    "cpu.cuts": set(),
    "cpu.machines": {"cpu.once", "cpu.tuning"},
    "cpu.once": set(),
    "cpu.processor": set(),
    "cpu.tuning": set(),
    "cpu.cache": set(),
    "cpu.steps": set(),
    "cpu.tile": set(),
    "cpu.views": {"problem"},
    "cpu.walks": {"problem"},
    "threads": {"keywords", "processors", "_repeat"},
    "without_openmp": {"threads", "_repeat"},
    "processors": set(),
    "by_address": {"_repeat"},
    "wishes": {"default_algorithm", "keywords", "locks"},
    "jax": {
        "_repeat",
        "_xla_ffi",
        "arguments",
        "arrays",
        "bounded",
        "by_address",
        "calls",
        "cpu",
        "default_algorithm",
        "dtypes",
        "prepared",
        "threads",
        "wishes",
    },
    "torch": {
        "_aten",
        "_cpu_features",
        "_repeat",
        "arguments",
        "arrays",
        "bounded",
        "by_address",
        "calls",
        "cpu",
        "default_algorithm",
        "dtypes",
        "prepared",
        "threads",
        "wishes",
    },
    "gpu": {"bounded", "locks", "problem", "dtypes"},
    "documentation": set(),
    "problem": {"phases"},
    "phases": set(),
    "dtypes": set(),
    "data": set(),
}
#: What a module may import beside the standard library and NumPy. All of it inside a function, never at import.
OPTIONAL = {
    "gpu": {"cupy", "cupyx"},
    "arrays": {"cupy", "ml_dtypes"},  # for PyTorch's tensors on a GPU
    "demo": {"matplotlib"},
    "info": {"cupy", "ml_dtypes"},
    "run_file": {"ml_dtypes"},
}
#: What a module does import when it is imported itself: nobody else imports that one.
ENTRANCES = {"torch": {"torch"}, "jax": {"jax"}}
#: Not part of the running package: makes a data file that is checked in.
SCRIPTS = {PACKAGE / "data" / "make_digits.py"}
#: Files of more than 400 lines, and why each may be.
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
    """(absolute name of what is imported, whether that happens when the module itself is imported)."""
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
    """A dotted name cut back to the module that it lies in, where that is one of this package."""
    parts = name.split(".")
    while len(parts) > 1:
        path = PACKAGE.parent.joinpath(*parts)
        if path.with_suffix(".py").exists() or path.is_dir() or unit_of(".".join(parts)).startswith("_"):
            break
        parts.pop()
    return ".".join(parts)


def violations(source, path):
    """What a module's imports do against the rules."""
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
        ("cpu/cache.py", "import convgrad_cy.api"),
        ("cpu/direct/plan.py", "def f():\n    from convgrad_cy import cpu"),
        ("cpu/machines.py", "from .direct import plan"),
        ("geometry.py", "from .cpu.winograd import tilings"),
        ("shims/tensorflow.py", "from ..cpu import dgrad"),
        ("shims/tensorflow.py", "import tensorflow"),
        ("api.py", "import cupy"),
        ("api.py", "def f():\n    from . import torch"),
        ("torch/module.py", "import cupy"),
        ("arrays/of_torch.py", "def f():\n    import torch"),
        ("arrays/of_jax.py", "def f():\n    import jax"),
        ("gpu/module.py", "import cupy"),
        ("anything.py", "import numpy"),
    ],
)
def test_forbidden_imports_are_seen(file, source):
    assert violations(source, PACKAGE / file)


def test_allowed_imports_pass():
    source = "import os\nimport numpy as np\nfrom . import dtypes\nfrom .problem import ConvProblem"
    assert violations(source, PACKAGE / "geometry.py") == []


def cycle(graph):
    """The nodes of a cycle, the first one once more at the end, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_cycle():
    """Neither among the modules as they are nor among those that the rules allow."""
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
    """No source file of more than 400 lines that is not a table."""
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources()}
    assert {name for name, length in lengths.items() if length > 400} == set(LONG)
