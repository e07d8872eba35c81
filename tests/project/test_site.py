"""The pages that docs/conf.py hands to Sphinx. The stage site of .ci/run builds them, and each warning is an error."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))


@pytest.fixture(scope="module")
def conf():
    """The settings, with the one name that Sphinx defines."""
    return runpy.run_path(str(DOCS / "conf.py"), {"tags": SimpleNamespace(has=lambda name: False)})


def read(conf, page):
    """The text of a page as Sphinx gets it."""
    source = [(DOCS / f"{page}.md").read_text(encoding="utf-8")]
    conf["_read_source"](None, page, source)
    return source[0]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_the_site_or_to_the_repository(conf, page):
    """A link must lead to a page or picture of docs/, or be absolute: no other file is on the site."""
    targets = re.findall(r"\]\(([^)\s]+)\)", read(conf, page))
    inside = [target.split("#")[0] for target in targets if not target.startswith("https://")]
    assert all(target.startswith("/") and (DOCS / target[1:]).exists() for target in inside), inside
    assert {Path(target).suffix for target in inside} <= {".md", ".png"}
    repository = conf["LINKS"]["REPOSITORY"]
    outside = [target.split("#")[0] for target in targets if target.startswith(f"{repository}/")]
    assert all((ROOT / target.removeprefix(repository).split("/", 4)[3]).exists() for target in outside)


def test_the_front_page_is_the_readme(conf):
    text = read(conf, "index")
    assert text.startswith((ROOT / "README.md").read_text(encoding="utf-8").split("](")[0])
    assert "![Speedup of training steps over PyTorch's own kernels](/images/training.png)" in text


def test_the_menu_has_every_page(conf):
    """The table of docs/README.md must name each page: Sphinx refuses a page that no menu has."""
    menu = read(conf, "README").split("{toctree}")[1].split("```")[0].split()
    assert sorted(menu) == sorted({*PAGES, ":hidden:"} - {"README", "index"})


def test_documents_have_no_directives():
    """GitHub shows the documents, too, and has no directives."""
    for page in PAGES:
        assert not re.search(r"^(```|:::)\{", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE), page


@pytest.mark.parametrize(
    "name, shown, runs",
    [("plot_a.py", True, True), ("example_a.py", True, False), ("train_torch.py", False, False)],
)
def test_examples_that_run(conf, name, shown, runs):
    gallery = conf["sphinx_gallery_conf"]
    assert (re.search(gallery["ignore_pattern"], name) is None) == shown
    assert bool(re.search(gallery["filename_pattern"], f"docs/examples/{name}")) == runs
