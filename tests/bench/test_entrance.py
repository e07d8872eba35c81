"""The end of ``python -m bench`` if it is cut short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import entrance


@pytest.mark.skipif(os.name != "posix", reason="closed pipes say something else there")
@pytest.mark.parametrize("command, buffering", [("--list", ""), ("--list", "1"), ("--help", "")])
def test_reader_that_has_left(command, buffering):
    """A reader that leaves, as ``| head`` does, must give the shell's status of a closed pipe, and no message."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = subprocess.run(
            [sys.executable, "-m", "bench", command],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONUNBUFFERED": buffering},
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writer)
    assert (process.returncode, process.stderr) == (141, "")


@pytest.mark.parametrize("status", [0, 1, None])
def test_the_status_is_that_of_the_command(status):
    assert entrance.status_of(lambda: status) == status


def test_ctrl_c():
    def main():
        raise KeyboardInterrupt

    assert entrance.status_of(main) == 130


def test_other_errors_pass():
    with pytest.raises(SystemExit, match="2"):
        entrance.status_of(lambda: sys.exit(2))
    with pytest.raises(ZeroDivisionError):
        entrance.status_of(lambda: 1 // 0)


def test_without_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert entrance.status_of(lambda: 0) == 0
