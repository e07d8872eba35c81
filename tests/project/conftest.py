"""A folder in which setup.py can run."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What setup.py reads, in a folder of its own; nothing of a developer's in the environment."""
    for name in ("setup.py", "pyx", "convgrad_cy"):
        (tmp_path / name).symlink_to(ROOT / name)
    ours = [name for name in os.environ if name.startswith("CONVGRAD_CY_")]
    for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED", *ours):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
