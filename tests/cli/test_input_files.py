"""``python -m convgrad_cy run`` with other things than files, and the part of them that it reads."""

import json
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from commands import assert_one_line, start, status_of

X, W = np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3))
NO_FILE = "must be a plain file, not a folder, a pipe or a device"

posix = pytest.mark.skipif(os.name != "posix", reason="devices and pipes of POSIX")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working directory with arrays to run on."""
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", x=X, w=W)
    return tmp_path


def run(*arguments, **options):
    """Run the command in a process, which is ended if it does not end itself."""
    return start("run", "conv", *arguments, "out.npz", **options)


def assert_refused(process, said):
    assert (process.returncode, process.stdout) == (2, "")
    assert_one_line(process.stderr, said)
    assert not os.path.exists("out.npz")


@posix
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_arrays_from_a_device(device):
    """A device must be refused before anything is read: it need not end."""
    assert_refused(run(device), f"'{device}' {NO_FILE}")


@posix
def test_arrays_from_a_pipe_that_nobody_writes_to():
    os.mkfifo("pipe.npz")
    assert_refused(run("pipe.npz"), f"'pipe.npz' {NO_FILE}")


@posix
@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="the system has no /dev/stdin")
def test_arrays_from_standard_input():
    """A pipe must be refused. A redirected file must be read as a file."""
    with open("in.npz", "rb") as file:
        assert_refused(run("/dev/stdin", input=""), f"'/dev/stdin' {NO_FILE}")
        process = run("/dev/stdin", stdin=file)
    assert (process.returncode, process.stderr) == (0, "")


@posix
def test_attributes_from_a_device():
    """At most a bounded number of bytes may be read: a pipe may never end."""
    assert_refused(run("--attrs", "/dev/zero", "in.npz"), "it must have at most 1048576 bytes")


@posix
def test_attributes_from_a_pipe():
    """Attributes from a pipe must be read, as a shell's <(...) gives them."""
    os.mkfifo("pipe.json")
    writer = threading.Thread(target=Path("pipe.json").write_text, args=('{"padding": 1}',), daemon=True)
    writer.start()
    process = run("--attrs", "pipe.json", "in.npz")
    assert (process.returncode, process.stdout) == (0, "y: float64 (1, 1, 4, 4) -> out.npz\n")


@pytest.mark.parametrize("size, status", [(1 << 20, 0), ((1 << 20) + 1, 2)])
def test_the_largest_attributes(size, status, folder, capsys):
    (folder / "attributes.json").write_text('{"stride": 1}'.ljust(size))
    assert status_of("run", "conv", "--attrs", "attributes.json", "in.npz", "out.npz") == status
    assert ("must have at most 1048576 bytes" in capsys.readouterr().err) == (status == 2)


def test_attributes_with_a_byte_order_mark(folder):
    (folder / "attributes.json").write_bytes(json.dumps({"padding": 1}).encode("utf-8-sig"))
    assert status_of("run", "conv", "--attrs", "attributes.json", "in.npz", "out.npz") == 0
    with np.load("out.npz") as file:
        assert file["y"].shape == (1, 1, 4, 4)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files with holes")
def test_a_large_file_that_is_no_archive(folder, capsys):
    """A large file with holes must be refused at once: to read it would take minutes."""
    with open("large.npz", "wb") as file:
        file.truncate(1 << 40)
    assert status_of("run", "conv", "large.npz", "out.npz") == 2
    assert_one_line(capsys.readouterr().err, "'large.npz' is not an .npz file")
