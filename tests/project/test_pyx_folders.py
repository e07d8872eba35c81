"""The allowed includes of pyx/: each folder takes from the folders before it, in the order of the page there."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
#: The folders of pyx/. A file takes from its own folder and from the folders before it.
PYX_FOLDERS = ("base", "parallel", "tile", "copy", "direct", "small_groups", "long_sums", "winograd", "parts")
#: An exception: this header has vectors of the tile's width.
UPWARD = {("base/bfloat.h", "tile")}


def takes(text):
    """The folders of pyx/ from which a source takes something."""
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
    """Names of the variables that a header defines."""
    return re.findall(r"^static (?!const\b|inline\b)[^(\n]*?(\w+)(?:\[\w+\])*(?: =[^\n]*)?;", text, re.MULTILINE)


def test_headers_define_no_variables():
    """Headers must define no variables: each part of the kernels would have its own copy."""
    found = {path.name: variables(path.read_text()) for path in (ROOT / "pyx").rglob("*.h")}
    assert {name: names for name, names in found.items() if names} == {}
    text = "static _Thread_local int last = 1;\nstatic clock *now;\nstatic const int one = 1;\nstatic int f(void);\n"
    assert variables(text) == ["last", "now"]
