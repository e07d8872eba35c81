"""A build by a compiler without OpenMP warns if this costs time, unless one thread was asked for."""

import warnings

import numpy as np
import pytest
from test_invariance import run_python

import convgrad_cy as cg
from convgrad_cy import _repeat, calls, cpu
from convgrad_cy.cli import info
from convgrad_cy.settings import threads, without_openmp

LARGE = cpu.this_machine().tuning.serial_products
#: The least number of products for which a call warns, and one less.
X, W, FEWER = np.ones((1, 1, LARGE), np.float32), np.ones((1, 1, 1), np.float32), np.ones((1, 1, LARGE - 1), np.float32)


@pytest.fixture
def build(monkeypatch):
    """Act as if the compiler had had no OpenMP, and OpenMP would use four threads."""
    for name, value in (("_has_openmp", False), ("_processors", [0, 1, 2, 3]), ("_cores", 4), ("_quota", None)):
        monkeypatch.setattr(threads, name, value)
    monkeypatch.setattr(threads.processors, "processors", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(_repeat, "has_openmp", lambda: False)
    monkeypatch.setattr(_repeat, "lacks_openmp", lambda: True)
    monkeypatch.setattr(without_openmp, "_is_due", True)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    calls.forget()
    yield monkeypatch
    cg.set_num_threads(None)
    calls.forget()


def warned(*functions):
    """The warnings of some calls."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for function in functions:
            function()
    return found


def large():
    return cg.conv(X, W)


def test_the_first_large_call_warns(build):
    """Only the first large call must warn, with any filters: neither the import, nor small or later calls."""
    assert warned(lambda: cg.conv(FEWER, W), lambda: cg.explain("conv", [X.shape, W.shape])) == []
    (warning,) = warned(large, large, lambda: cg.conv_backward_data(X, W, X.shape))
    assert warning.category is RuntimeWarning and warning.filename == __file__
    said = str(warning.message)
    assert said.startswith("convgrad_cy was built without OpenMP and computes with 1 thread, not 4: to use more, ")
    assert "docs/support.md" in said and "set_num_threads(1) or OMP_NUM_THREADS=1" in said


def test_an_error_is_raised_once(build):
    """The error must be raised once if warnings are errors. ``out`` must then be untouched."""
    out = np.full(X.shape, 7, np.float32)
    with pytest.raises(RuntimeWarning, match="without OpenMP"):
        cg.conv(X, W, out=out)
    assert (out == 7).all()
    assert cg.conv(X, W, out=out) is out and (out == 1).all()


def test_of_what_was_asked_for(build):
    cg.set_num_threads(3)
    (warning,) = warned(large)
    assert "with 1 thread, not 3:" in str(warning.message)
    assert cg.get_num_threads() == 1


@pytest.mark.parametrize("wish", ("set_num_threads", "num_threads", "OMP_NUM_THREADS", "quota", "a core", "a child"))
def test_who_has_one_thread_anyway_is_not_warned(wish, build):
    def call():
        if wish == "num_threads":
            with cg.num_threads(1):
                return large()
        return large()

    if wish == "set_num_threads":
        cg.set_num_threads(1)
    elif wish == "OMP_NUM_THREADS":
        build.setenv(wish, "1,2")
    elif wish == "quota":
        build.setattr(threads, "_quota", 1)
    elif wish == "a core":
        build.setattr(threads, "_cores", 1)
    elif wish == "a child":
        build.setattr(threads, "_is_child", True)
    assert warned(call) == []


@pytest.mark.parametrize(
    ("value", "number"), (("3", 3), ("3,2", 3), (" 5 ", 5), ("", 4), ("0", 4), ("-1", 4), ("many", 4))
)
def test_openmps_number(value, number, build):
    build.setenv("OMP_NUM_THREADS", value)
    assert threads.wanted() == number and cg.get_num_threads() == 1


def test_info(build):
    lines = dict(info.lines())
    assert lines["threads"].startswith("1: the compiler that built convgrad_cy had no OpenMP; to use more, ")
    build.setattr(_repeat, "lacks_openmp", lambda: False)
    assert dict(info.lines())["threads"] == "1: built with CONVGRAD_CY_NO_OPENMP"


def test_this_build_is_silent():
    """This build must be silent: it has OpenMP or left it out on request; otherwise conftest.py asks for one thread."""
    code = f"import numpy as np, convgrad_cy as cg; cg.conv(np.ones((1, 1, {LARGE}), 'f4'), np.ones((1, 1, 1), 'f4'))"
    run = run_python("-c", code)
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)


@pytest.mark.skipif(not _repeat.lacks_openmp(), reason="the compiler had OpenMP, or was told to leave it out")
def test_a_build_without_openmp():
    """A real build without OpenMP must warn."""
    call = f"cg.conv(np.ones((1, 1, {LARGE}), 'f4'), np.ones((1, 1, 1), 'f4'))"
    run = run_python(
        "-c",
        f"import warnings, numpy as np, convgrad_cy as cg; warnings.simplefilter('error'); {call}",
        OMP_NUM_THREADS="2",
    )
    assert run.returncode == 1 and "RuntimeWarning: convgrad_cy was built without OpenMP" in run.stderr
