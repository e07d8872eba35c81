"""Absolute links from documents into the repository, for readers on a package index and on the documentation's site."""

import posixpath
import re
from pathlib import Path

#: The repository's page on GitHub. This line is the only one that names it: OWNER is to be replaced once.
REPOSITORY = "https://github.com/OWNER/convgrad_cy"

#: A link or a picture of Markdown: the mark of a picture, the text, the target. Targets with a scheme are absolute.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?![a-z]+:)([^()\s]+)\)")


def version():
    """The package's version, read from the one line that has it."""
    (found,) = re.findall(r'^__version__ = "(.+)"$', Path("convgrad_cy/__init__.py").read_text(), re.MULTILINE)
    return found


def address(path, tag, raw=False):
    """The page of a file or folder at a tag, or with ``raw`` its bytes, for pictures."""
    return f"{REPOSITORY}/{'raw' if raw else 'blob'}/{tag}/{path}"


def rewritten(text, document, target_of):
    """A document's Markdown with other targets. ``document`` and the argument of ``target_of`` are repository paths.

    ``target_of`` also gets whether the link is a picture.
    """

    def replace(match):
        mark, label, target = match.groups()
        path, hash_mark, heading = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(document), path)) if path else document
        return f"{mark}[{label}]({target_of(path, bool(mark))}{hash_mark}{heading})"

    return LINK.sub(replace, text)


def absolute(text, document, tag):
    """A document's Markdown with absolute links."""
    return rewritten(text, document, lambda path, raw: address(path, tag, raw))


def metadata():
    """The fields of setup() for a package index: the description with absolute links, and the project's pages."""
    tag = f"v{version()}"
    return {
        "long_description": absolute(Path("README.md").read_text(encoding="utf-8"), "README.md", tag),
        "long_description_content_type": "text/markdown",
        "project_urls": {
            "Source": REPOSITORY,
            "Documentation": address("docs/README.md", tag),
            "Changelog": address("CHANGELOG.md", tag),
            "Issues": f"{REPOSITORY}/issues",
        },
    }
