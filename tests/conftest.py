"""Skips the tests that need a package which is not installed, and says so."""

from importlib.util import find_spec
from shutil import which

import pytest

#: A test with one of these markers needs the package of that name.
OPTIONAL = ("torch", "onnx", "mindspore", "tensorflow")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well, as CI does")


def pytest_configure(config):
    for name in OPTIONAL:
        config.addinivalue_line("markers", f"{name}: needs the package {name}; skipped where it is not installed")
    config.addinivalue_line("markers", "onednn: needs the real library in the environment CONVGRAD_CY_ONEDNN_VENV")
    config.addinivalue_line("markers", "simulator: runs CUDA kernels on the CPU; skipped where g++ is not installed")
    config.addinivalue_line("markers", "slow: run only with --slow")


def pytest_collection_modifyitems(config, items):
    missing = [name for name in OPTIONAL if find_spec(name) is None]
    for item in items:
        for name in missing:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"{name} is not installed"))
        if item.get_closest_marker("simulator") and which("g++") is None:
            item.add_marker(pytest.mark.skip(reason="g++ is not installed"))
    if not config.getoption("--slow"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        if slow:
            config.hook.pytest_deselected(items=slow)
