"""mypy, pyright and stubtest: a user's program, the documents, and the stubs as the installed package has them.

TYPED_PYTHON names the Python in whose environment the checkers look for the package; by default it is this one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import convgrad_cy

HERE = Path(__file__).parent
PACKAGE = Path(convgrad_cy.__file__).parent
PYTHON = os.environ.get("TYPED_PYTHON", sys.executable)
#: The newest pyright without a download at its first run, and pyright itself.
PYRIGHTS = ("basedpyright", "pyright")


def run(*command, cwd):
    """Standard output of a checker, which may find errors but must not fail in another way."""
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def by_mypy(folder, strict=True):
    """(file, line) -> message of each error in a folder."""
    pytest.importorskip("mypy", reason="mypy is not installed: it is in the extra [types]")
    options = ["--strict"] if strict else ["--check-untyped-defs", "--allow-redefinition"]
    options += ["--python-executable", PYTHON, "--no-error-summary", "--cache-dir", str(folder.parent / "cache")]
    lines = re.findall(r"^(.*?):(\d+): error: (.*)$", run("mypy", *options, folder.name, cwd=folder.parent), re.M)
    return {(Path(file).name, int(line)): text for file, line, text in lines}


def by_pyright(folder, strict=True, **settings):
    tool = next((tool for tool in PYRIGHTS if find_spec(tool)), None)
    if tool is None:
        pytest.skip("pyright is not installed: basedpyright is in the extra [types]")
    settings = {"include": [folder.name], "typeCheckingMode": "strict" if strict else "standard"} | settings
    (folder.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    found = json.loads(run(tool, "-p", ".", "--pythonpath", PYTHON, "--outputjson", cwd=folder.parent))
    assert found["summary"]["filesAnalyzed"] > 0
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"]
        for each in found["generalDiagnostics"]
        if each["severity"] == "error"
    }


CHECKERS = pytest.mark.parametrize("check", [by_mypy, by_pyright])


def marked(program):
    """The lines of a program that a checker must refuse."""
    lines = program.read_text(encoding="utf-8").splitlines()
    return [(program.name, number) for number, line in enumerate(lines, 1) if line.endswith("  # wrong")]


def check_program(name, check, tmp_path):
    (folder := tmp_path / "checked").mkdir()
    program = Path(shutil.copy(HERE / name, folder))
    found = check(folder)
    assert len(marked(program)) >= 6
    assert sorted(found) == marked(program), found


@CHECKERS
def test_wrong_calls_and_no_others_are_refused(check, tmp_path):
    """No array library but NumPy need be installed for this."""
    check_program("program.py", check, tmp_path)


@pytest.mark.torch
@pytest.mark.jax
@CHECKERS
def test_arrays_of_pytorch_and_jax(check, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    check_program("program_torch_jax.py", check, tmp_path)


@pytest.mark.checkout
@CHECKERS
def test_examples_of_the_documents_are_accepted(check, tmp_path):
    """A reader who copies an example must see no error in the editor."""
    root = HERE.parents[1]
    (folder := tmp_path / "checked").mkdir()
    for document in (root / "README.md", root / "docs/arrays.md", root / "docs/golden-model.md"):
        blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text(encoding="utf-8"), re.DOTALL | re.M)
        assert blocks
        for number, block in enumerate(blocks):
            (folder / f"{document.stem.replace('-', '_')}_{number}.py").write_text(block)
    assert check(folder, strict=False) == {}


def copied(tmp_path):
    """A folder with a copy of the package, away from other packages, which a checker would take for the user's own."""
    folder = tmp_path / "checked"
    shutil.copytree(PACKAGE, folder / "convgrad_cy", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return folder


def test_mypy_accepts_the_stubs(tmp_path):
    """mypy --strict refuses a function or a generic class without types."""
    pytest.importorskip("mypy", reason="mypy is not installed: it is in the extra [types]")
    folder = copied(tmp_path)
    options = ["--strict", "--python-executable", PYTHON, "--cache-dir", str(tmp_path), "--follow-imports=silent"]
    files = [str(file.relative_to(folder)) for file in (*folder.rglob("*.pyi"), folder / "convgrad_cy/typing.py")]
    assert len(files) > 12
    assert run("mypy", *options, *files, cwd=folder).startswith("Success")


def test_pyright_accepts_the_stubs(tmp_path):
    settings = {"include": ["checked/**/*.pyi", "checked/convgrad_cy/typing.py"], "extraPaths": ["checked"]}
    assert by_pyright(copied(tmp_path), **settings) == {}


def test_stubs_agree_with_the_package(tmp_path):
    """Each name, signature and default of the stubs must be the one at run time."""
    pytest.importorskip("mypy", reason="mypy is not installed: it is in the extra [types]")
    (config := tmp_path / "mypy.ini").write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\n")
    (missing := tmp_path / "missing.txt").write_text(
        "".join(f"convgrad_cy\\.{name}(\\..*)?\n" for name in ("dask", "jax", "torch") if find_spec(name) is None)
    )
    options = ["--mypy-config-file", config, "--ignore-unused-allowlist", "--allowlist", missing]
    out = run("mypy.stubtest", "convgrad_cy", *options, "--allowlist", HERE / "stubtest.txt", cwd=tmp_path)
    assert out.startswith("Success"), out


#: Codes of numpydoc that the docstrings do not follow.
LEFT_OUT = {
    *("ES01", "EX01", "SA01"),  # a longer summary, examples and links: where they help
    *("GL01", "GL08", "SA04"),  # the first line is at the quotes; constructors are described by their class
}


#: Module below the shims -> the beginning of the names of its operations.
OPERATIONS = {"cupy_cudnn": "convolution", "mindspore": "Conv2D", "onednn": "Conv", "tensorflow.raw_ops": "Conv2D"}


def public():
    """The full names of the public functions and of the operations of the shims."""
    names = [f"convgrad_cy.{name}" for name in convgrad_cy.__all__ if not name.startswith("_")]
    for shim, begin in OPERATIONS.items():
        module = import_module(f"convgrad_cy.shims.{shim}")
        names += [f"{module.__name__}.{name}" for name in module.__all__ if name.startswith(begin)]
    for library in filter(find_spec, ("torch", "jax")):
        names += [f"convgrad_cy.{library}.{name}" for name in ("enable", "disable", "enabled", "is_enabled", "status")]
    return names


@pytest.mark.parametrize("name", public())
def test_docstrings_are_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed: it is in the extra [types]")
    assert [error for error in validate.validate(name)["errors"] if error[0] not in LEFT_OUT] == []
