"""Which folder of pyx/ may take from which: each from those before it, in the order that the page there has."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
#: The folders of pyx/: a file takes from its own folder and from those before it.
PYX_FOLDERS = ("base", "parallel", "tile", "copy", "direct", "small_groups", "long_sums", "winograd", "parts")
#: It has vectors of the tile's width.
UPWARD = {("base/bfloat.h", "tile")}


def takes(text):
    """The folders of pyx/ that a source there takes something from."""
    first = re.findall(r'^ *(?:from |#include "|cdef extern from ")(\w+)[./]\w', text, re.MULTILINE)
    return {*first} & {*PYX_FOLDERS}


def test_folders_of_pyx_are_in_order():
    found = set()
    for rank, folder in enumerate(PYX_FOLDERS):
        for path in sorted((ROOT / "pyx" / folder).iterdir()):
            upward = takes(path.read_text()) & {*PYX_FOLDERS[rank + 1 :]}
            found |= {(f"{folder}/{path.name}", other) for other in upward}
    assert found == UPWARD
    page = (ROOT / "pyx/README.md").read_text()
    assert re.findall(r"^\| `(\w+)/`", page, re.MULTILINE) == [*PYX_FOLDERS, "setup"]
    text = 'from copy.window cimport Box\ncdef extern from "tile/slide.h" nogil:\n#include "base/bfloat.h"\n'
    assert takes(text) == {"copy", "tile", "base"}


def variables(text):
    """Names of what a header defines that can change."""
    return re.findall(r"^static (?!const\b|inline\b)[^(\n]*?(\w+)(?:\[\w+\])*(?: =[^\n]*)?;", text, re.MULTILINE)


def test_headers_define_no_variables():
    """Each part of the kernels would have one of its own."""
    found = {path.name: variables(path.read_text()) for path in (ROOT / "pyx").rglob("*.h")}
    assert {name: names for name, names in found.items() if names} == {}
    text = "static _Thread_local int last = 1;\nstatic clock *now;\nstatic const int one = 1;\nstatic int f(void);\n"
    assert variables(text) == ["last", "now"]
