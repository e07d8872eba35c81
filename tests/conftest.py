"""Skips tests whose package is not installed, and says so. Runs slow tests, or a share of all, on request."""

import os
from collections import defaultdict
from hashlib import sha256
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from shutil import which

import pytest
from hypothesis import settings

from convgrad_cy import _repeat
from convgrad_cy.settings import without_openmp

# A build without OpenMP warns once if several threads would be used, and tests treat warnings as errors. A user who
# asks for one thread gets no warning. The variable holds for the processes that tests start.
if _repeat.lacks_openmp():
    without_openmp._is_due = False
    os.environ["OMP_NUM_THREADS"] = "1"

#: A test with one of these markers needs the package of that name.
OPTIONAL = ("torch", "jax", "onnx", "mindspore", "tensorflow", "dask")
#: Whether the sources are next to the tests. packaging/check_wheel.sh runs the tests without them.
IS_CHECKOUT = (Path(__file__).parents[1] / "pyx").is_dir()


def pytest_addoption(parser):
    parser.addoption("--share", type=float, default=1.0, help="run this part of the parameters of each test")
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")
    parser.addoption(
        "--slow-share", type=float, default=1.0, help="with --slow: this part of the parameters of each, as CI does"
    )
    parser.addoption(
        "--whole-share", type=float, default=1.0, help="like --slow-share, for tests marked slow(whole=True)"
    )
    parser.addoption(
        "--seed", type=int, default=0, help="choose the shares and draw the random calls with this; CI takes 0"
    )
    parser.addoption("--fuzz-calls", type=int, default=0, help="draw this number of calls in tests/watch/test_fuzz.py")


def pytest_configure(config):
    # A busy machine is no error. Each run draws the same examples, unless it is given a seed.
    settings.register_profile("fixed", deadline=None, derandomize=config.getoption("--hypothesis-seed") is None)
    settings.load_profile("fixed")
    for name in OPTIONAL:
        config.addinivalue_line("markers", f"{name}: needs the package {name}; skipped where it is not installed")
    config.addinivalue_line("markers", "examples: runs an example of docs/examples; skipped without its packages")
    config.addinivalue_line("markers", "checkout: reads the sources; skipped if a wheel is tested without them")
    config.addinivalue_line("markers", "onednn: needs the real library in the environment CONVGRAD_CY_ONEDNN_VENV")
    config.addinivalue_line("markers", "simulator: runs CUDA kernels on the CPU; skipped if g++ is not installed")
    config.addinivalue_line(
        "markers", "tuning: pins choices of fitted numbers; choices may change with them, bits may not"
    )
    config.addinivalue_line("markers", "slow(whole=False): run only with --slow; whole: all, whatever --slow-share")


@pytest.fixture
def machine_with(monkeypatch):
    """A function that plans later calls for this machine with other fields, such as ``own_tuning``."""
    from convgrad_cy import calls, cpu

    machine = cpu.this_machine

    def use(**fields):
        monkeypatch.setattr(cpu, "this_machine", lambda *count: machine(*count)._replace(**fields))
        calls.forget()

    yield use
    calls.forget()


def _share(items, share, seed):
    """This share of the parameters of each test, at least one: those whose names have the smallest hashes."""
    functions = defaultdict(list)
    for item in items:
        functions[item.path, getattr(item, "originalname", item.name)].append(item)
    for alike in functions.values():
        alike.sort(key=lambda item: sha256(f"{seed}{item.nodeid}".encode()).digest())
        yield from alike[: ceil(share * len(alike))]


def _chosen(items, config):
    """The tests to run."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    others = [item for item in items if not item.get_closest_marker("slow")]
    seed = config.getoption("--seed")
    yield from _share(others, config.getoption("--share"), seed)
    if config.getoption("--slow"):
        for whole in (True, False):
            alike = [item for item in slow if item.get_closest_marker("slow").kwargs.get("whole", False) == whole]
            yield from _share(alike, config.getoption("--whole-share" if whole else "--slow-share"), seed)


def pytest_collection_modifyitems(config, items):
    missing = [name for name in OPTIONAL if find_spec(name) is None]
    for item in items:
        for name in missing:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"{name} is not installed"))
        if item.get_closest_marker("checkout") and not IS_CHECKOUT:
            item.add_marker(pytest.mark.skip(reason="the sources are not next to the tests"))
        if item.get_closest_marker("simulator") and which("g++") is None:
            item.add_marker(pytest.mark.skip(reason="g++ is not installed"))
    chosen = set(_chosen(items, config))
    if deselected := [item for item in items if item not in chosen]:
        items[:] = [item for item in items if item in chosen]
        config.hook.pytest_deselected(items=deselected)
