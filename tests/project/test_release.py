"""The conditions of a release, and the list of software that a wheel bundles."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad_cy

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
TAG = f"v{convgrad_cy.__version__}"


@pytest.fixture
def checkout(tmp_path):
    """The files that check_release.py reads, ready for a release."""
    for name in ("packaging", "pyx/setup", "convgrad_cy"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("packaging/check_release.py", "convgrad_cy/__init__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    links = (ROOT / "pyx/setup/links.py").read_text()
    (tmp_path / "pyx/setup/links.py").write_text(links.replace("/OWNER/", "/somebody/"))
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {convgrad_cy.__version__} (2026-12-01)\n")
    return tmp_path


def said(checkout, *arguments):
    """The exit status and the lines of check_release.py."""
    command = [sys.executable, checkout / "packaging/check_release.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=checkout.parent)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_commit_that_is_ready(checkout):
    assert said(checkout, TAG) == (0, ["ready for a release"])
    assert said(checkout, TAG, "somebody/convgrad_cy") == (0, ["ready for a release"])


@pytest.mark.parametrize("tag", ["", "v9.9.9", convgrad_cy.__version__])
def test_another_tag(checkout, tag):
    status, (line,) = said(checkout, tag)
    assert status == 1 and line.endswith(f"asks for {TAG}.")


@pytest.mark.parametrize("text", ["", f"## {convgrad_cy.__version__} (not released yet)\n", "## 9.9.9 (2026-12-01)\n"])
def test_a_changelog_without_the_release(checkout, text):
    (checkout / "CHANGELOG.md").write_text(text)
    status, (line,) = said(checkout, TAG)
    assert status == 1 and line.startswith("CHANGELOG.md needs a heading")


def test_another_repository(checkout):
    status, (line,) = said(checkout, TAG, "else/convgrad_cy")
    assert status == 1 and line.endswith("but this is else/convgrad_cy.")
    shutil.copy(ROOT / "pyx/setup/links.py", checkout / "pyx/setup/links.py")
    if "/OWNER/" in (ROOT / "pyx/setup/links.py").read_text():
        assert said(checkout, TAG)[1] == ["pyx/setup/links.py still has OWNER in the repository's address."]


@pytest.mark.parametrize(
    "purl, name, version",
    [
        ("pkg:deb/debian/libgomp1@12.2.0-14%2Bdeb12u1?arch=amd64", "libgomp1", "12.2.0-14+deb12u1"),
        ("pkg:generic/gcc@14.2.0?checksum=sha256:0&download_url=https://a.org/b", "gcc", "14.2.0"),
    ],
)
def test_list_of_bundled_software(tmp_path, monkeypatch, purl, name, version):
    """The list must name the origin of libgomp, and the hash of the file in the wheel."""
    wheel, library = tmp_path / "wheel", tmp_path / "libgomp.so.1"
    (wheel / "convgrad_cy-1.2.dist-info").mkdir(parents=True)
    (wheel / "convgrad_cy.libs").mkdir()
    (wheel / "convgrad_cy.libs/libgomp.so.1").write_bytes(b"stripped")
    library.write_bytes(b"original")
    Path(f"{library}.purl").write_text(f"{purl}\n")
    runpy.run_path(str(ROOT / "packaging/bundled.py"))["main"](wheel, library)
    told = json.loads((wheel / "convgrad_cy-1.2.dist-info/sboms/bundled.cdx.json").read_text())
    (found,) = told["components"]
    assert (found["name"], found["version"], found["purl"]) == (name, version, purl)
    (hashed,) = found["hashes"]  # of the bytes "stripped"
    assert hashed["content"] == "8531d8960e7f2447508d80e80d48fd96730cf89a9987268971d858fc49cba71a"
    assert told["metadata"]["component"]["version"] == "1.2"
