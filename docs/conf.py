"""The documentation's site: ``sphinx-build -nW docs build/site``, with the extra ``docs``.

The pages are docs/*.md as GitHub shows them. This file adds the front page, the menus, the reference, which is made
from docstrings, and the gallery: each docs/examples/plot_*.py and example_*.py is a page. ``-D plot_gallery=1`` also
runs the former.
"""

import posixpath
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import convgrad_cy

DOCS = Path(__file__).resolve().parent
LINKS = runpy.run_path(str(DOCS.parent / "pyx/setup/links.py"))

project = "convgrad_cy"
author = "The convgrad_cy developers"
copyright = author
version = release = convgrad_cy.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_gallery.gen_gallery",
]
#: Pages about PyTorch, JAX and Dask import them. Without one of them its page is left out.
MISSING = [name for name in ("torch", "jax", "dask") if find_spec(name) is None]
exclude_patterns = ["examples", *(f"reference/{name}.rst" for name in MISSING)]
default_role = "autolink"
autosummary_generate = False  # the pages of the reference list the functions themselves
autodoc_typehints = "none"  # numpydoc's sections have the types, in words
numpydoc_show_class_members = False
myst_heading_anchors = 4  # links to headings are written as on GitHub

# A build needs no network: names of other projects become links only with `-t online`, as in the workflow.
intersphinx_mapping = {}
nitpick_ignore_regex = []
nitpick_ignore = [("py:obj", "threadpoolctl")]  # its documentation is a README
OTHERS = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "jax": "https://docs.jax.dev/en/latest",
    "torch": "https://docs.pytorch.org/docs/stable",
}
if tags.has("online"):  # noqa: F821 (Sphinx defines it)
    intersphinx_mapping = {name: (url, None) for name, url in OTHERS.items()}
else:
    nitpick_ignore_regex = [("py:.*", rf"{name}\..*") for name in OTHERS]

# --- Links. docs/*.md link to files as GitHub shows them; some of these files are no pages of the site. ---


def _on_site(path, raw):
    """The target of a link: a page or picture of docs/ if there is one, else the file in the repository."""
    if path == "README.md":
        return "/index.md"
    inside = posixpath.relpath(path, "docs")
    if not inside.startswith(("../", "examples/")) and (raw or (DOCS / inside).suffix == ".md"):
        return f"/{inside}"
    return LINKS["address"](path, f"v{release}", raw)


def _toctree(*pages):
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def _read_source(app, docname, source):
    """Change the links of a page, and give the two pages that have a menu theirs."""
    if docname == "reference/index":
        for name in MISSING:
            source[0] = source[0].replace(f"   {name}\n", "")
    path = f"docs/{docname}.md"
    if docname == "index":
        path = "README.md"
        source[0] = (DOCS.parent / path).read_text(encoding="utf-8")
    if not (DOCS.parent / path).exists():
        return  # a page of the reference or of the gallery
    pages = dict.fromkeys(re.findall(r"\]\(([\w-]+)\.md\b", source[0]))
    source[0] = LINKS["rewritten"](source[0], path, _on_site)
    source[0] = re.sub(r"\[(?:docs/)?[\w-]+\.md\](?=\(/[\w-]+\.md\))", "[]", source[0])  # titles, not names of files
    if docname == "index":
        source[0] += _toctree("Documentation <README>", "reference/index", "gallery/index")
    elif docname == "README":
        source[0] += _toctree(*pages)


def setup(app):
    app.connect("source-read", _read_source)


# --- The gallery. ---

# Examples need NumPy and matplotlib only if their names begin with plot_, so these run. Others are shown.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "ignore_pattern": "^(?!plot_|example_)",
    "plot_gallery": "False",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",) if find_spec("matplotlib") else (),
    "reset_modules": (),
    "write_computation_times": False,
}

# --- The theme. ---

html_theme = "pydata_sphinx_theme"
html_title = f"convgrad_cy {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "icon_links": [{"name": "Repository", "url": LINKS["REPOSITORY"], "icon": "fa-brands fa-github"}],
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
    "show_prev_next": False,
}
