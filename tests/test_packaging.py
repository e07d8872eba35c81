"""What a newcomer reads and installs: README, metadata, and the file lists of wheel and sdist."""

import fnmatch
import re
import shlex
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import convgrad_cy

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def fenced(language, text=README):
    """The fenced blocks of a document in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", ["README.md", "docs/frameworks.md"])
def test_python_examples_run(document, capsys):
    """And print what stands behind each print."""
    blocks = fenced("python", (ROOT / document).read_text(encoding="utf-8"))
    namespace = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{document}, python block {number}", "exec"), namespace)
    expected = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert expected and capsys.readouterr().out.splitlines() == expected


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
def test_readme_has_an_example_of_every_framework_operation(name):
    assert any(f"{name}(" in block for block in fenced("python"))


@pytest.mark.parametrize("name", [name for name in convgrad_cy.__all__ if not name.startswith("_")])
def test_readme_has_an_example_of_every_function(name):
    assert any(re.search(rf"\bcg\.{name}\(", block) for block in fenced("python"))


def test_readme_gives_two_commands():
    """`.ci/run` reads the commands from the README by these marks."""
    commands = [line for block in fenced("sh") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    demo, tests = ([shlex.split(part) for part in command.split("&&")] for command in commands)
    assert demo[-1] == [".venv/bin/python", "-m", "convgrad_cy", "demo"]
    assert tests[-1] == [".venv/bin/python", "-m", "pytest", "-n", "auto"]


@pytest.mark.checkout
def test_links_of_the_documents_lead_somewhere():
    for document in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / target).exists(), f"{document} links to {target}"


def test_metadata():
    assert metadata("convgrad_cy")["Version"] == convgrad_cy.__version__
    required = [line for line in requires("convgrad_cy") if "extra ==" not in line]
    assert len(required) == 1
    assert required[0].startswith("numpy")


def in_sdist(path):
    """Whether MANIFEST.in, or setuptools by itself, puts a file of the source tree into the sdist."""
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
    # A module is compiled under a name of its own first, which another process may be doing just now.
    found = [path for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts and path.suffix not in made]
    assert [str(path) for path in found if path.is_file() and not in_sdist(path)] == []
