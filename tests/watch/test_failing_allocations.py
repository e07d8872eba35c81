"""Each allocation fails in turn: a call without memory must raise MemoryError and change nothing."""

import json
import subprocess
import sys
from functools import partial

import pytest
from kernel_calls import CASES
from operations import OPERATIONS
from watched import built, needs_linux, run_child

from convgrad_cy import calls
from convgrad_cy.cpu import families
from convgrad_cy.cpu.plan.job import Job

pytestmark = needs_linux
#: The cases that always run.
FEW = ("direct", "lanes", "winograd_nan")


#: A generator expression whose allocations fail one after the other, in CPython alone.
GENERATOR = """
import _testcapi
def any_of(first, second):
    return any(one is not other for one, other in zip(first, second, strict=True))
for i in range(60):
    try:
        _testcapi.set_nomemory(i, i + 1)
        any_of((1, 2), (1, 2))
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
"""


@pytest.fixture(scope="module")
def interpreter():
    """Skip if CPython itself ends with SIGSEGV when a generator finds no memory, as 3.12.1 and 3.13.0 do."""
    if subprocess.run([sys.executable, "-c", GENERATOR], capture_output=True).returncode < 0:
        pytest.skip("this CPython dies by itself where a generator finds no memory")


def cases(names):
    slow = pytest.mark.slow(whole=True)
    marked = [name if name in FEW else pytest.param(name, marks=slow) for name in names]
    return pytest.mark.parametrize("case", marked)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return built("allocations.c", tmp_path_factory.mktemp("allocations"))


@pytest.fixture
def report(library, tmp_path, figures):
    """The report of fail_allocations.py about a case's functions."""

    def run(kind, case, *functions):
        # Threads that wait in vain for others would take both cores.
        ended = run_child(
            tmp_path, "fail_allocations.py", kind, case, *functions, preload=library, OMP_WAIT_POLICY="passive"
        )
        assert ended.code == 0, str(ended)
        said = json.loads(ended.stdout)
        figures({f"calls with failing allocations, {name}": number for name, number in said["figures"].items()})
        assert said["figures"]["MemoryError"] > 0
        return said["wrong"]

    return run


@cases(CASES)
def test_nothing_is_changed(case, report):
    assert report("memory", case, *OPERATIONS) == []


@cases(CASES)
def test_neither_of_a_pair_is_changed(case, report):
    assert report("memory", case, "conv_backward") == []


@cases(name for name, case in CASES.items() if not case.strided)
def test_no_memory_for_objects(case, report, interpreter):
    assert report("objects", case, *OPERATIONS) == []


@cases(name for name, case in CASES.items() if not case.strided)
def test_no_memory_for_objects_of_a_pair(case, report, interpreter):
    assert report("objects", case, "conv_backward") == []


def test_cases_reach_the_kernels(monkeypatch):
    """The cases must reach the kernels of their names: otherwise they would test nothing."""
    seen = set()

    def ready(job, numbers):
        lanes = " lanes" if not job.kernel.startswith("winograd") and job.plan.blocks[1] else ""
        seen.add(job.kernel + lanes)
        return usual_ready(job, numbers)

    def pipeline(family, *arguments):
        seen.add(families.name_of(family))
        return usual[family](*arguments)

    usual_ready, usual = Job.ready, {family: family.pipeline for family in families.PREFERENCE}
    monkeypatch.setattr(Job, "ready", ready)
    for family in families.PREFERENCE:
        monkeypatch.setattr(family, "pipeline", partial(pipeline, family))
    calls.forget()
    for case in CASES.values():
        for call in case.calls().values():
            call.run()
    kernels = {"correlate", "wgrad", "correlate lanes", "wgrad lanes", "winograd_correlate", "winograd_wgrad"}
    assert seen == kernels | {"overlaps", "columns", "exchanged", "winograd", "small_groups", "direct"}
