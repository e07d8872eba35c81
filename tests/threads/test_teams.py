"""The threads of the kernels: as many as asked for, or fewer if the system creates no more."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loops import CALLS, results
from test_invariance import run_python

import convgrad_cy as cg
from convgrad_cy import _repeat, calls
from convgrad_cy.cpu.machine import kernels
from convgrad_cy.cpu.plan.job import Job
from convgrad_cy.memo.bounded import Bounded

HERE = Path(__file__).parent
needs_openmp = pytest.mark.skipif(not _repeat.has_openmp(), reason="built without OpenMP: there is one thread")
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


@pytest.mark.parametrize("number", [2, 3, 5])
def test_same_bits(number):
    assert results(number) == results(1)


@needs_openmp
def test_calls_have_a_team(monkeypatch):
    """The calls of ``loops`` must have the loops and teams of their names: the tests of teams depend on them."""
    seen = []

    def ready(job, numbers):
        lanes = " lanes" if not job.kernel.startswith("winograd") and job.plan.blocks[1] else ""
        seen.append((f"{job.kernel}{lanes}", int(job.plan.blocks[0])))
        return usual_ready(job, numbers)

    def rearrange(source, target, number):
        seen.append(("rearrange", number))
        return usual_rearrange(source, target, number)

    usual_ready, usual_rearrange = Job.ready, kernels.compiled.rearrange
    monkeypatch.setattr(Job, "ready", ready)
    monkeypatch.setattr(kernels.compiled, "rearrange", rearrange)
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    for name, call in CALLS.items():
        seen.clear()
        with cg.num_threads(3):
            call()
        assert (name, 3) in seen


TEAM = """
import os, time
import convgrad_cy as cg
from loops import CALLS

def more(expected):
    "Threads in addition to the first ones. Threads of a larger team end a little later."
    for _ in range(1000):
        found = len(os.listdir("/proc/self/task")) - before
        if found <= expected:
            break
        time.sleep(0.01)
    return found

before = len(os.listdir("/proc/self/task"))
with cg.num_threads(1):
    CALLS["correlate"]()
    print(more(0))
with cg.num_threads(4):
    CALLS["correlate"]()
    print(more(3))
cg.set_num_threads(2)
CALLS["correlate"]()
print(more(1))
cg.set_num_threads(5)
CALLS["correlate"]()
print(more(4))
"""


@needs_openmp
@needs_linux
def test_kernels_use_it():
    run = run_python("-c", TEAM)
    assert (run.stdout.split(), run.returncode) == (["0", "3", "1", "4"], 0), run.stderr


LIMITED = """
import ctypes, os, sys
from loops import CALLS, results
import convgrad_cy as cg
from convgrad_cy import cpu, dtypes

def more():
    return len(os.listdir("/proc/self/task")) - before

limit_threads = ctypes.CDLL(sys.argv[1]).limit_threads
most = int(sys.argv[2])
before = len(os.listdir("/proc/self/task"))
expected = results(1)
limit_threads(most)
for name, call in CALLS.items():
    for threads in (5, 2, 5, 3, 1, 5):
        with cg.num_threads(threads):
            if call().tobytes() != expected[name]:
                print(name, "with", threads)
        if more() > most:
            print(name, "has", more())
with cg.num_threads(5):
    cpu.run_tiles(dtypes.TABLE[0], 16, 16)
limit_threads(100)
print(results(5) == expected, more())
"""


@pytest.fixture(scope="module")
def limiter(tmp_path_factory):
    """The library that limits the threads of a process."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc)")
    library = tmp_path_factory.mktemp("limit") / "thread_limit.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", HERE / "thread_limit.c", "-o", library, "-ldl", "-lpthread"], check=True
    )
    return library


@needs_openmp
@needs_linux
@pytest.mark.parametrize("most", [0, 1, 3])
def test_threads_that_cannot_be_created(limiter, most):
    """Each loop must compute with the threads that exist, in a growing or shrinking team, and with all once it can."""
    preloaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(limiter)]))
    run = run_python("-c", LIMITED, limiter, most, LD_PRELOAD=preloaded)
    assert (run.stdout.split(), run.returncode) == (["True", "4"], 0), run.stdout + run.stderr


# Each thread has a stack of 64 MiB, so that two fit into the remaining memory.
LITTLE_MEMORY = """
import os, resource
from loops import results

expected = results(1)
before = len(os.listdir("/proc/self/task"))
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (160 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
print(results(6) == expected, len(os.listdir("/proc/self/task")) - before)
"""


@needs_openmp
@needs_linux
@pytest.mark.parametrize("name, value", [("OMP_STACKSIZE", "64M"), ("GOMP_STACKSIZE", "65536")])
def test_no_memory_for_threads(name, value):
    run = run_python("-c", LITTLE_MEMORY, **{name: value})
    assert (run.stdout.split(), run.returncode) == (["True", "2"], 0), run.stderr


NO_PROCESSES = """
import os, resource
from loops import results

expected = results(1)
if os.geteuid() == 0:  # whom the limit does not bind
    try:
        os.setgid(65534)
        os.setuid(65534)
    except OSError as error:
        print("root cannot become another user:", error)
        raise SystemExit
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
print(results(3) == expected)
"""


@needs_openmp
@needs_linux
def test_no_process_for_threads():
    run = run_python("-c", NO_PROCESSES)
    if run.stdout.startswith("root"):
        pytest.skip(run.stdout.strip())
    assert (run.stdout.split(), run.returncode) == (["True"], 0), run.stderr
