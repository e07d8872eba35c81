"""No kernel reads or writes beside its arrays: not even where the next page cannot be touched."""

import json
import signal
import sys

import pytest
from operations import DTYPES
from watched import run_child

from convgrad_cy import cpu

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
#: Without --slow, one problem of so many.
EVERY = 20


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("isa", cpu.available_isas())
def test_no_stray_access(isa, dtype, tmp_path, figures, whole):
    every = 1 if whole else EVERY
    first = DTYPES.index(dtype) * 2 % every
    ended = run_child(tmp_path, "touch_guards.py", dtype, every, first, CONVGRAD_CY_ISA=isa)
    assert ended.code == 0, str(ended)
    said = json.loads(ended.stdout)
    figures({f"guard pages, {name}": number for name, number in said["figures"].items()})
    assert said["wrong"] == []


def test_stray_access_is_seen(tmp_path):
    ended = run_child(tmp_path, "touch_guards.py", "stray")
    assert ended.code == -signal.SIGSEGV
    assert str(ended).startswith("SIGSEGV during: a stray read")
