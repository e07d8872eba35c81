"""Links of README.md on a package index, where no file of the repository is near."""

import re
import runpy
import subprocess
import sys
from email import message_from_string
from pathlib import Path

import pytest

import convgrad_cy

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
LINKS_FILE = ROOT / "pyx/setup/links.py"
LINKS = runpy.run_path(str(LINKS_FILE)) if LINKS_FILE.exists() else {}  # a wheel's tests have no sources
#: The metadata of a wheel, as pip asks for it.
PREPARE = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
#: Each target of Markdown's links and pictures.
TARGET = r"\]\(([^)]*)\)"


@pytest.fixture
def built(folder):
    """The METADATA that setuptools writes."""
    pytest.importorskip("setuptools", "77")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (folder / name).symlink_to(ROOT / name)
    done = subprocess.run([sys.executable, "-c", PREPARE], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return message_from_string((folder / done.stdout.splitlines()[-1] / "METADATA").read_text(encoding="utf-8"))


def test_metadata_has_no_relative_link(built):
    """Each link of the built description must be absolute, and lead to the file that README.md names."""
    text = built.get_payload()
    relative = re.findall(TARGET, (ROOT / "README.md").read_text(encoding="utf-8"))
    found = re.findall(TARGET, text)
    assert len(found) == len(relative) > 10
    assert [target for target in found if not target.startswith("https://")] == []
    assert 'src="' not in text and not re.search(r"^\[[^]]+\]: ", text, re.MULTILINE)  # other forms of links
    pages = f"{LINKS['REPOSITORY']}/"
    paths = [target.removeprefix(pages).split("#")[0] for target in found if target.startswith(pages)]
    tag = f"v{convgrad_cy.__version__}"
    assert {path.split("/")[1] for path in paths} == {tag}
    assert all((ROOT / path.split("/", 2)[2]).exists() for path in paths)
    assert f"![Speedup of training steps over PyTorch's own kernels]({pages}raw/{tag}/docs/images/training.png)" in text


def test_metadata_names_the_pages_of_the_project(built):
    urls = dict(line.split(", ") for line in built.get_all("Project-URL"))
    assert urls.keys() == {"Source", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(LINKS["REPOSITORY"]) for url in urls.values())
    assert built["Description-Content-Type"] == "text/markdown"


def test_only_one_line_names_the_repository():
    name = LINKS["REPOSITORY"].removeprefix("https://")
    files = [path for pattern in ("*.md", "*.toml", "*.py") for path in ROOT.glob(pattern)]
    files += [path for folder in ("pyx", "docs", "packaging", ".github") for path in (ROOT / folder).rglob("*.*")]
    texts = [
        path.read_text(encoding="utf-8") for path in files if path.suffix in (".md", ".toml", ".py", ".sh", ".yml")
    ]
    assert sum(text.count(name) for text in texts) == 1


@pytest.mark.parametrize(
    "link, absolute",
    [
        ("[a](design.md)", "[a](URL/blob/T/docs/design.md)"),
        ("[a](../README.md#install)", "[a](URL/blob/T/README.md#install)"),
        ("[a](#errors)", "[a](URL/blob/T/docs/page.md#errors)"),
        ("![a](images/a.png)", "![a](URL/raw/T/docs/images/a.png)"),
        ("[`f[1]`](x.py)", "[`f[1]`](URL/blob/T/docs/x.py)"),
        ("[a](https://a.org/b)", "[a](https://a.org/b)"),
        ("[a](mailto:a@b.org)", "[a](mailto:a@b.org)"),
    ],
)
def test_absolute(link, absolute):
    assert LINKS["absolute"](link, "docs/page.md", "T") == absolute.replace("URL", LINKS["REPOSITORY"])
