"""Skips the tests that need a package which is not installed, and says so."""

from importlib.util import find_spec

import pytest

#: A test with one of these markers needs the package of that name.
OPTIONAL = ("torch", "onnx", "mindspore", "tensorflow")


def pytest_configure(config):
    for name in OPTIONAL:
        config.addinivalue_line("markers", f"{name}: needs the package {name}; skipped where it is not installed")
    config.addinivalue_line("markers", "onednn: needs the real library in the environment CONVGRAD_CY_ONEDNN_VENV")


def pytest_collection_modifyitems(items):
    missing = [name for name in OPTIONAL if find_spec(name) is None]
    for item in items:
        for name in missing:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"{name} is not installed"))
