"""Forks, many Python threads at once, and the modules that an import loads."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from operations import OPERATIONS, bits, real_tensors
from problems import PROBLEMS
from test_invariance import run_python

import convgrad_cy

# The parent first computes with all its threads, so that a library that cannot survive a fork fails here.
FORK = """
import hashlib, os, signal, warnings
from child import as_bytes

warnings.simplefilter("ignore", DeprecationWarning)  # Python's own warning that a process with threads forks

def digest():
    return hashlib.sha256(b"".join(array.tobytes() for array in as_bytes().values())).digest()

def fork(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # ends a child that hangs
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

expected = digest()
child = fork(lambda: digest() == expected)
grandchild = fork(lambda: fork(lambda: digest() == expected) == 0)
print(child, grandchild, int(digest() == expected), int(fork(lambda: digest() == b"") == 1))
"""

POOL = """
import multiprocessing, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from operations import OPERATIONS, bits, real_tensors
from problems import PROBLEMS

def work(name):
    problem = PROBLEMS["2d_blocks"]
    return bits(OPERATIONS[name].call(problem, real_tensors(problem, "float32")))

if __name__ == "__main__":
    names = ["conv", "conv_backward_data", "conv_backward_filter"] * 4
    expected = [work(name) for name in names]
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(pool.map_async(work, names).get(timeout=120) == expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("threads", ["1", "2", "4"])
def test_fork_after_use(threads):
    """A child and a grandchild must compute the parent's bits, and so must the parent afterwards."""
    run = run_python("-c", FORK, OMP_NUM_THREADS=threads)
    assert (run.stdout.strip(), run.returncode) == ("0 0 1 1", 0), run.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_pool(tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    run = run_python(script, OMP_NUM_THREADS="2")
    assert (run.stdout.strip(), run.returncode) == ("True", 0), run.stderr


def test_many_python_threads():
    """Eight threads that call all operations at once must get the results of one thread."""
    names = ("2d_blocks", "2d_blocks_stride2", "2d_same", "2d_depth1200", "2d_depthwise_many")
    calls = [
        (operation, problem, real_tensors(problem, dtype))
        for operation in OPERATIONS.values()
        for problem in (PROBLEMS[name] for name in names)
        for dtype in ("float16", "float32", "float64", "int32")
    ]

    def compute(call):
        operation, problem, tensors = call
        return bits(operation.call(problem, tensors))

    expected = [compute(call) for call in calls]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            # From both ends, so that different problems meet.
            assert list(pool.map(compute, calls + calls[::-1], timeout=120)) == expected + expected[::-1]


def test_first_use_from_many_threads():
    """The set-up of the first call must happen once, also if eight threads make this call."""
    script = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from child import as_bytes\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    runs = [future.result() for future in [pool.submit(as_bytes) for _ in range(8)]]\n"
        "names = runs[0].keys()\n"
        "print(all((run[name] == runs[0][name]).all() for run in runs for name in names))\n"
    )
    run = run_python("-c", script)
    assert (run.stdout.strip(), run.returncode) == ("True", 0), run.stderr


IMPORTED = """
import numpy, sys
before = set(sys.modules)
import {module}
# What has no file is made by Cython's runtime: cython_runtime and _cython_<version>.
new = {{name.partition(".")[0] for name in set(sys.modules) - before if getattr(sys.modules[name], "__file__", None)}}
print(*sorted(new - set(sys.stdlib_module_names) - {{"numpy"}}))
"""


def imported_with(module, **environment):
    run = run_python("-c", IMPORTED.format(module=module), **environment)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_import_brings_in_only_numpy():
    assert imported_with("convgrad_cy") == ["convgrad_cy"]


def test_import_of_another_package_is_seen(tmp_path):
    (tmp_path / "stranger.py").write_text("import convgrad_cy")
    path = os.pathsep.join([str(Path(convgrad_cy.__file__).parents[1]), str(tmp_path)])
    assert imported_with("stranger", PYTHONPATH=path) == ["convgrad_cy", "stranger"]


def test_import_is_silent():
    run = run_python("-c", "import convgrad_cy")
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)
