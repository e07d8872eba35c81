"""Whether a commit is ready for a release: ``python packaging/check_release.py TAG [OWNER/REPOSITORY]``.

The tag must name the package's version, CHANGELOG.md must have a heading for it, and pyx/setup/links.py must name the
repository. The second argument is the repository in which a workflow runs.
"""

import os
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def faults(tag, repository=None):
    """The reasons against a release, each a sentence."""
    os.chdir(ROOT)
    links = runpy.run_path("pyx/setup/links.py")
    version, named = links["version"](), links["REPOSITORY"]
    if tag != f"v{version}":
        yield f"The tag is {tag or 'missing'}, but __version__ in convgrad_cy/__init__.py asks for v{version}."
    heading = re.search(
        rf"^## {re.escape(version)}\b.*$", Path("CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    if not heading or "not released" in heading.group():
        yield f"CHANGELOG.md needs a heading '## {version} (DATE)'."
    if "/OWNER/" in named:
        yield "pyx/setup/links.py still has OWNER in the repository's address."
    elif repository and named != f"https://github.com/{repository}":
        yield f"pyx/setup/links.py names {named}, but this is {repository}."


def main(*arguments):
    found = list(faults(*arguments))
    print(*found or ["ready for a release"], sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
