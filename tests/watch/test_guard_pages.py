"""No kernel reads or writes outside of its arrays or of its own memory: the next page is forbidden."""

import json
import signal
import sys

import pytest
from operations import DTYPES
from watched import built, needs_linux, run_child

from convgrad_cy import cpu

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
#: Without --slow, one problem in EVERY runs.
EVERY = 20


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library that guards the kernels' memory, if the system is known."""
    if not sys.platform.startswith("linux"):
        return None
    return built("allocations.c", tmp_path_factory.mktemp("allocations"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("isa", cpu.available_isas())
def test_no_stray_access(isa, dtype, library, tmp_path, figures, whole):
    every = 1 if whole else EVERY
    first = DTYPES.index(dtype) * 2 % every
    environment = {"CONVGRAD_CY_ISA": isa, "OMP_WAIT_POLICY": "passive"}
    ended = run_child(tmp_path, "touch_guards.py", dtype, every, first, preload=library, **environment)
    assert ended.code == 0, str(ended)
    said = json.loads(ended.stdout)
    figures({f"guard pages, {name}": number for name, number in said["figures"].items()})
    assert said["wrong"] == []


def test_stray_access_is_seen(tmp_path):
    ended = run_child(tmp_path, "touch_guards.py", "stray")
    assert ended.code in (-signal.SIGSEGV, -signal.SIGBUS)  # systems differ
    assert ended.note == "a stray read" and str(ended).startswith(signal.Signals(-ended.code).name)


@needs_linux
def test_stray_access_to_scratch_memory_is_seen(library, tmp_path):
    ended = run_child(tmp_path, "touch_guards.py", "stray_scratch", preload=library)
    assert (ended.code, ended.note) == (-signal.SIGSEGV, "a stray read of scratch memory")
