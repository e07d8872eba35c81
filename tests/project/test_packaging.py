"""The documents and files of a new user: README, metadata, and the file lists of wheel and sdist."""

import fnmatch
import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import convgrad_cy

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def fenced(language, text=README):
    """The fenced blocks of a document in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def expected_output(blocks):
    """The comments behind the prints, indented or not."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)


@pytest.mark.parametrize("document", ["README.md", "docs/arrays.md", "docs/golden-model.md"])
def test_python_examples_run(document, capsys):
    """Each block must run alone, as a reader copies it. The comment behind a print must be its output."""
    blocks = fenced("python", (ROOT / document).read_text(encoding="utf-8"))
    for number, block in enumerate(blocks):
        exec(compile(block, f"{document}, python block {number}", "exec"), {"__name__": "__main__"})
    expected = expected_output(blocks)
    assert blocks and capsys.readouterr().out.splitlines() == expected


#: Runs each block of a document in a namespace of its own, as a reader copies it.
EACH_BLOCK = """
import json, sys
for number, block in enumerate(json.load(sys.stdin)):
    exec(compile(block, f"python block {number}", "exec"), {"__name__": "__main__"})
"""


@pytest.mark.torch
def test_pytorch_examples_run():
    """The README's first "py" block and each one of docs/pytorch.md must run alone, in a process of their own."""
    of_torch, of_jax = fenced("py")
    assert "convgrad_cy.torch" in of_torch and "convgrad_cy.jax" in of_jax
    blocks = [of_torch, *fenced("python", (ROOT / "docs/pytorch.md").read_text(encoding="utf-8"))]
    command = [sys.executable, "-W", "error", "-c", EACH_BLOCK]
    done = subprocess.run(command, input=json.dumps(blocks), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    logged = "aten::_convolution went to PyTorch: tensors of torch.int64"
    assert printed.count(logged) == 1
    printed.remove(logged)
    assert printed == expected_output(blocks)


@pytest.mark.dask
def test_dask_examples_run():
    """Each block of docs/scale.md must run alone and print the comments' texts."""
    blocks = fenced("python", (ROOT / "docs/scale.md").read_text(encoding="utf-8"))
    command = [sys.executable, "-W", "error", "-c", EACH_BLOCK]
    done = subprocess.run(command, input=json.dumps(blocks), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(blocks) == 2 and done.stdout.splitlines() == expected_output(blocks)


@pytest.mark.jax
def test_jax_examples_run():
    """The README's second "py" block and each one of docs/jax.md must run alone and print the comments' texts."""
    blocks = [fenced("py")[1], *fenced("python", (ROOT / "docs/jax.md").read_text(encoding="utf-8"))]
    command = [sys.executable, "-W", "error", "-c", EACH_BLOCK]
    done = subprocess.run(command, input=json.dumps(blocks), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(blocks) >= 5 and done.stdout.splitlines() == expected_output(blocks)


@pytest.mark.parametrize(
    "name",
    [
        "ops.Conv2DBackpropInput",
        "ops.Conv2DTranspose",
        "raw_ops.Conv2DBackpropInput",
        "onednn.ConvolutionBackpropData",
        "onednn.ConvTransposeBackpropFilters",
    ],
)
def test_there_is_an_example_of_every_framework_operation(name):
    blocks = fenced("python", (ROOT / "docs/golden-model.md").read_text(encoding="utf-8"))
    assert any(f"{name}(" in block for block in blocks)


@pytest.mark.parametrize("name", [name for name in convgrad_cy.__all__ if not name.startswith("_")])
def test_there_is_an_example_of_every_function(name):
    blocks = fenced("python", (ROOT / "docs/arrays.md").read_text(encoding="utf-8"))
    assert any(re.search(rf"\bcg\.{name}\(", block) for block in blocks)


def test_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_readme_gives_two_commands():
    """README.md must have the marks by which `.ci/run` reads the two commands."""
    commands = [line for block in fenced("sh") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    demo, tests = ([shlex.split(part) for part in command.split("&&")] for command in commands)
    assert demo[-1] == [".venv/bin/python", "-m", "convgrad_cy", "demo"]
    assert tests[-1] == [".venv/bin/python", "-m", "pytest", "-n", "auto"]


@pytest.mark.checkout
def test_links_of_the_documents_lead_somewhere():
    """Links must lead to a file that exists, and to one of its headings."""
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "bench" / "README.md"]:
        for target, heading in re.findall(
            r"\]\((?!https?:)([^)#\s]*)#?([^)]*)\)", document.read_text(encoding="utf-8")
        ):
            path = document.parent / target if target else document
            assert path.exists(), f"{document} links to {target}"
            assert not heading or heading in anchors(path), f"{document} links to {target}#{heading}"


def anchors(document):
    """The headings of a document as GitHub names them in links."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_metadata():
    assert metadata("convgrad_cy")["Version"] == convgrad_cy.__version__
    required = [line for line in requires("convgrad_cy") if "extra ==" not in line]
    assert len(required) == 1
    assert required[0].startswith("numpy")


def in_sdist(path):
    """Whether MANIFEST.in, or setuptools itself, puts a file of the source tree into the sdist."""
    name = path.relative_to(ROOT).as_posix()
    included = (path.suffix == ".py" and name.startswith("convgrad_cy/")) or name in ("setup.py", "pyproject.toml")
    for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
        command, *arguments = line.split()
        if command == "graft":
            included |= name.startswith(f"{arguments[0]}/")
        elif command == "recursive-include":
            folder, *patterns = arguments
            included |= name.startswith(f"{folder}/") and any(fnmatch.fnmatch(path.name, each) for each in patterns)
        elif command == "include":
            included |= any(fnmatch.fnmatch(name, each) for each in arguments)
    return included


@pytest.mark.checkout
@pytest.mark.parametrize("folder", ["pyx", "convgrad_cy", "tests", "bench", "docs", "packaging"])
def test_sdist_holds_every_source(folder):
    made = {".so", ".c"}
    # A module is first compiled under another name. Another process may be doing so now.
    found = [path for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts and path.suffix not in made]
    assert [str(path) for path in found if path.is_file() and not in_sdist(path)] == []
