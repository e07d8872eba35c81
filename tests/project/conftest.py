"""A folder in which setup.py can run."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that setup.py reads, and an environment without a developer's variables."""
    for name in ("setup.py", "pyx", "convgrad_cy"):
        (tmp_path / name).symlink_to(ROOT / name)
    ours = [name for name in os.environ if name.startswith("CONVGRAD_CY_")]
    for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED", *ours):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
