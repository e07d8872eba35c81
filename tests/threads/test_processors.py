"""The number of processors that a process may use, according to the system's files."""

import os
import sys

import pytest
from test_invariance import run_python

import convgrad_cy as cg
from convgrad_cy import _repeat
from convgrad_cy.settings import processors, threads


def written(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def topology(folder, siblings):
    for number, text in enumerate(siblings):
        written(folder / f"cpu{number}" / "topology", thread_siblings_list=text + "\n")
    return folder


@pytest.mark.parametrize(
    ("siblings", "allowed", "cores"),
    (
        (["0", "1"], [0, 1], 2),
        (["0-1", "0-1"], [0, 1], 1),
        (["0,4", "1,5", "2,6", "3,7"] * 2, range(8), 4),
        (["0,4", "1,5", "2,6", "3,7"] * 2, [0, 1, 4], 2),  # a cpuset
        ([], [0, 1, 2], 3),  # the system does not say
    ),
)
def test_cores(tmp_path, siblings, allowed, cores):
    assert processors.count_cores(allowed, topology(tmp_path, siblings)) == cores


@pytest.mark.parametrize(
    ("limits", "quota"),
    (
        ([("", "max 100000")], None),
        ([("", "250000 100000")], 2),
        ([("", "50000 100000")], 1),
        ([("job/step", "400000 100000")], 4),
        ([("job", "300000 100000"), ("job/step", "800000 100000")], 3),  # the quota of the group around it
        ([("job", "x")], None),
        ([], None),
    ),
)
def test_quota(tmp_path, limits, quota):
    root = tmp_path / "cgroup"
    for path, text in limits:
        written(root / path, cpu__max=text + "\n")
    own = written(tmp_path, cgroup_of_process="0::/job/step\n") / "cgroup_of_process"
    assert processors.quota(root, own) == quota


@pytest.mark.parametrize(("quota", "found"), (("600000", 6), ("-1", None)))
def test_first_version(tmp_path, quota, found):
    written(tmp_path / "cpu,cpuacct" / "job", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
    own = written(tmp_path, own="3:memory:/job\n4:cpu,cpuacct:/job\n") / "own"
    assert processors.quota(tmp_path, own) == found
    assert processors.quota(tmp_path, tmp_path / "none") is None


@pytest.mark.skipif(not _repeat.has_openmp(), reason="built without OpenMP: there is one thread")
def test_hyperthreads(monkeypatch):
    """OpenMP's default must become the number of cores. A number that a user has set must stay."""
    own = _repeat.max_threads()
    monkeypatch.setattr(threads, "_quota", None)
    monkeypatch.setattr(threads, "_cores", 77)
    monkeypatch.setattr(threads, "_processors", [*range(own)])
    assert cg.get_num_threads() == 77
    monkeypatch.setattr(threads, "_processors", [*range(own + 1)])
    assert cg.get_num_threads() == own


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
@pytest.mark.skipif(not _repeat.has_openmp(), reason="built without OpenMP: there is one thread")
@pytest.mark.parametrize(
    ("environment", "counts"),
    (
        ({}, True),
        ({"OMP_NUM_THREADS": "3"}, False),
        ({"OMP_PROC_BIND": "close"}, False),
        ({"OMP_PLACES": "threads"}, False),
    ),
)
def test_environment(environment, counts):
    """Cores must be counted if the user sets neither the number of threads nor their places."""
    environment = {"OMP_NUM_THREADS": "", "OMP_PROC_BIND": "", "OMP_PLACES": "", **environment}
    code = "from convgrad_cy.settings import threads; print(len(threads._processors), threads.get_num_threads())"
    child = run_python("-c", code, **environment)
    assert child.returncode == 0, child.stderr
    found, number = map(int, child.stdout.split())
    assert found == (len(os.sched_getaffinity(0)) if counts else 0)
    assert number == 3 or not environment["OMP_NUM_THREADS"]
