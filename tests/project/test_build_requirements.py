"""A release is built from files with known hashes, and with all requirements of pyproject.toml."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
LOCKED = ROOT / "packaging" / "build-requirements.txt"
#: The tools of a build, and the tools that check a release.
BOTH = pytest.mark.parametrize("name", ["build", "release"])
HASH = re.compile(r" --hash=sha256:[0-9a-f]{64}(?= |$)")


def lines(path):
    """The requirements of a file, each on one line, without comments."""
    text = re.sub(r" *\\\n *", " ", path.read_text(encoding="utf-8"))
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def locked(line):
    """A requirement and the number of its hashes; None if the line has anything else."""
    bare, hashes = HASH.subn("", line)
    return (Requirement(bare), hashes) if hashes and re.search(r"==\S+", bare) and "--" not in bare else None


def asked():
    """The requirements of pyproject.toml for a build."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^\[build-system\]\nrequires = \[(.*)\]$", text, re.MULTILINE)
    return [Requirement(each) for each in re.findall(r'"(.*?)"', listed)]


@BOTH
def test_every_line_has_a_version_and_a_hash(name):
    found = lines(ROOT / "packaging" / f"{name}-requirements.txt")
    assert len(found) > 8
    assert [line for line in found if locked(line) is None] == []
    assert locked("build==1.6.1") is None
    assert locked(f"build>=1.6.1 --hash=sha256:{'0' * 64}") is None
    assert locked("build==1.6.1 --hash=sha256:0123") is None


def test_what_a_build_asks_for_is_there():
    requirements = [locked(line)[0] for line in lines(LOCKED)]
    assert len(asked()) == 3
    for wanted in asked():
        versions = [each.specifier for each in requirements if each.name == wanted.name]
        assert versions, f"{wanted} is not in {LOCKED.name}"
        for version in versions:
            assert wanted.specifier.contains(str(version).removeprefix("==")), f"{wanted}, not {version}"


@BOTH
def test_the_hashes_are_those_of_the_chosen_versions(name):
    """The hashes must belong to the chosen versions: one file may be changed without the other."""
    wanted, made = (ROOT / "packaging" / f"{name}-requirements.{end}" for end in ("in", "txt"))
    found = {(each.name, str(each.specifier)) for each, _ in map(locked, lines(made))}
    chosen = {(each.name, str(each.specifier)) for each in map(Requirement, lines(wanted))}
    assert len(chosen) > 2 and chosen <= found


def test_releases_are_built_with_them():
    for path in ("packaging/build.sh", "pyproject.toml"):
        text = (ROOT / path).read_text(encoding="utf-8")
        (command,) = re.findall(r"pip install .*build-requirements\.txt", text)
        assert "--require-hashes --only-binary :all:" in command
