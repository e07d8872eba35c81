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


def fenced(language):
    """The fenced blocks of the README in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_python_examples_of_the_readme_run():
    namespace = {}
    for number, block in enumerate(fenced("python")):
        exec(compile(block, f"README.md, python block {number}", "exec"), namespace)


@pytest.mark.parametrize("name", [name for name in convgrad_cy.__all__ if not name.startswith("_")])
def test_readme_has_an_example_of_every_function(name):
    assert any(re.search(rf"\bcg\.{name}\(", block) for block in fenced("python"))


def test_readme_gives_two_commands():
    """`.ci/run` reads the commands from the README by these marks."""
    commands = [line for block in fenced("sh") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    demo, tests = ([shlex.split(part) for part in command.split("&&")] for command in commands)
    assert demo[-1] == [".venv/bin/python", "-m", "convgrad_cy", "demo"]
    assert tests[-1] == [".venv/bin/python", "-m", "pytest"]


def test_links_of_the_documents_lead_somewhere():
    for document in ("README.md", "CONTRIBUTING.md"):
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


@pytest.mark.parametrize("folder", ["pyx", "convgrad_cy", "tests", "bench", "docs"])
def test_sdist_holds_every_source(folder):
    made = {".so", ".pyc", ".c"}
    sources = [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix not in made]
    assert [str(path) for path in sources if not in_sdist(path)] == []
