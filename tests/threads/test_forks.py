"""A child that is forked in the midst of another thread's work waits for nothing and has consistent caches."""

import os
from pathlib import Path

import pytest
from test_invariance import run_python

WHERE = ("lock", "keep", "clear", "property", "planning", "setter", "kernel", "team", "fork in planning")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("where", WHERE)
def test_a_child_computes(where):
    run = run_python(Path(__file__).with_name("held.py"), where, OMP_NUM_THREADS="2")
    assert (run.stdout.strip(), run.returncode) == ("0", 0), run.stderr
