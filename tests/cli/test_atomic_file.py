"""Files of commands are complete or absent, on full and read-only disks, and for any failure of a write."""

import io
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from commands import PLOT_STAND_IN, assert_one_line, start, status_of

from convgrad_cy import atomic_file

ARRAYS = {"x": np.ones((1, 1, 4, 4)), "w": np.ones((1, 1, 3, 3))}
RUN = ("run", "conv", "in.npz", "out.npz")
PLOT = ("demo", "--epochs", "1", "--plot", "out.png")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with arrays to run on, and older files under the names of the new ones."""
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", **ARRAYS)
    for name in ("out.npz", "out.png"):
        (tmp_path / name).write_bytes(b"older")
    return tmp_path


@pytest.fixture
def drawing(monkeypatch):
    """A stand-in for matplotlib."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(PLOT_STAND_IN)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        del sys.modules[name]


def assert_untouched():
    assert sorted(os.listdir()) == ["in.npz", "out.npz", "out.png"]
    for name in ("out.npz", "out.png"):
        with open(name, "rb") as file:
            assert file.read() == b"older"


def assert_result():
    with np.load("out.npz") as file:
        np.testing.assert_array_equal(file["y"], np.full((1, 1, 2, 2), 9.0))


class Disk(io.FileIO):
    """A file on a disk that has ``room`` bytes, and takes at most ``at_once`` bytes in a write."""

    room = at_once = sys.maxsize

    def write(self, data):
        taken = memoryview(data).cast("B")[: min(self.room - self.tell(), self.at_once)]
        if not taken:
            raise OSError(28, "No space left on device")
        return super().write(taken)


@pytest.fixture
def disk(monkeypatch):
    """The class of the files that commands write. The test sets their room."""

    class OneDisk(Disk):
        pass

    monkeypatch.setattr(
        atomic_file, "open", lambda path, mode: io.BufferedWriter(OneDisk(path, mode.replace("b", ""))), raising=False
    )
    return OneDisk


def test_a_disk_that_is_full_after_so_many_bytes(folder, disk, capsys):
    """The older file must stay if the disk is full after any number of bytes that is too small for the result."""
    assert status_of(*RUN) == 0
    size = os.path.getsize("out.npz")
    (folder / "out.npz").write_bytes(b"older")
    capsys.readouterr()
    for room in range(0, size, 3):
        disk.room = room
        assert status_of(*RUN) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert_one_line(printed.err, "cannot write 'out.npz': No space left on device")
        assert_untouched()
    disk.room = size
    assert status_of(*RUN) == 0
    assert_result()


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_short_writes(at_once, folder, disk):
    disk.at_once = at_once
    assert status_of(*RUN) == 0
    assert_result()


def test_a_disk_that_is_full_when_the_picture_comes(folder, disk, drawing, capsys):
    disk.room = 20_000
    assert status_of(*PLOT) == 2
    printed = capsys.readouterr()
    assert_one_line(printed.err, "--plot cannot be written to 'out.png': No space left on device")
    assert "test accuracy" in printed.out
    assert_untouched()


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failure_at_the_end(function, folder, monkeypatch, capsys):
    """A failure at the end must be seen: some disks report that they are full only on flush or close."""

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fail)
    assert status_of(*RUN) == 2
    assert_one_line(capsys.readouterr().err, "cannot write 'out.npz': No space left on device")
    assert_untouched()


def test_all_is_on_the_disk_before_the_old_file_goes(folder, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (done.append(os.fstat(number)), fsync(number)))
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append(os.stat(old)), replace(old, new)))
    assert status_of(*RUN) == 0
    synced, replaced = done
    assert (synced.st_ino, synced.st_size) == (replaced.st_ino, replaced.st_size)
    assert replaced.st_size == os.path.getsize("out.npz")
    assert_result()


def test_an_interrupted_write(folder, monkeypatch):
    def interrupted(file, **arrays):
        file.write(b"half a result")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    assert status_of(*RUN) == 130
    assert_untouched()


def test_a_name_as_long_as_names_can_be(folder, capsys):
    longest = os.pathconf(".", "PC_NAME_MAX") if hasattr(os, "pathconf") else 255
    assert status_of(*RUN[:-1], "o" * longest) == 0
    os.unlink("o" * longest)
    capsys.readouterr()
    assert status_of(*RUN[:-1], "o" * (longest + 1)) == 2
    assert_one_line(capsys.readouterr().err, "File name too long")
    assert_untouched()


def test_a_limit_on_the_size_of_files(folder):
    """The system's own limit must be handled: it takes a part of a write, and refuses the next one."""
    resource = pytest.importorskip("resource")
    for limit in (0, 1, 200):
        process = start(*RUN, preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert (process.returncode, process.stdout) == (2, "")
        assert_one_line(process.stderr, "cannot write 'out.npz': File too large")
        assert_untouched()


def test_a_disk_of_two_pages(folder):
    """A real disk that is full must be handled. A process in a namespace of its own may mount it, this one may not."""
    mount = 'mkdir disk && mount -t tmpfs -o size=8k none disk && echo older > disk/out.npz && exec "$@"'
    prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh")
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    os.rmdir("disk")
    np.savez("in.npz", x=np.ones((1, 1, 40, 40)), w=np.ones((1, 1, 1, 1)))
    prefix = (*prefix[:-1], "sh", "sh", "-c", '"$@"; status=$?; ls -A disk; cat disk/out.npz; exit $status', "sh")
    process = start("run", "conv", "in.npz", "disk/out.npz", prefix=prefix)
    assert (process.returncode, process.stdout) == (2, "out.npz\nolder\n")
    assert_one_line(process.stderr, "cannot write 'disk/out.npz': No space left on device")


def without_rights(folder):
    """The prefix of a command that makes file permissions apply, also if this process is root's."""
    folder.chmod(0o500)
    if os.geteuid():
        return ()
    prefix = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    if (
        not shutil.which("setpriv")
        or not subprocess.run([*prefix, "touch", folder / "new"], capture_output=True).returncode
    ):
        pytest.skip("root may do all here")
    return prefix


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("command", [RUN, PLOT], ids=["run", "plot"])
def test_a_folder_without_permission(command, folder):
    os.mkdir("locked")
    prefix = without_rights(folder / "locked")
    variables = {"PYTHONPATH": os.pathsep.join([str(PLOT_STAND_IN), os.environ.get("PYTHONPATH", "")])}
    process = start(*command[:-1], f"locked/{command[-1]}", prefix=prefix, variables=variables)
    assert (process.returncode, process.stdout) == (2, "")
    assert_one_line(process.stderr, "Permission denied")
    os.rmdir("locked")  # it is empty
    assert_untouched()


#: Paths that can hold no file, not even for root: (path, message).
NOWHERE = [
    ("missing/out", "No such file or directory"),
    ("in.npz/out", "Not a directory"),
    ("folder", "not a plain file"),
    ("pipe", "not a plain file"),
]


@pytest.mark.skipif(os.name != "posix", reason="names and messages of POSIX")
@pytest.mark.parametrize("place, said", NOWHERE)
def test_a_place_where_no_file_can_be(place, said, folder, drawing, capsys, monkeypatch):
    """A path that can hold no file must be refused before the work: nothing is computed or trained."""
    from convgrad_cy.cli import run
    from convgrad_cy.cli.demo import training

    monkeypatch.setattr(run, "call", lambda *arguments: pytest.fail("computed before it looked"))
    monkeypatch.setattr(training, "demo", lambda *arguments: pytest.fail("trained before it looked"))
    for ending, command in ((".npz", RUN), (".png", PLOT)):
        os.mkdir(f"folder{ending}")
        os.mkfifo(f"pipe{ending}")
        assert status_of(*command[:-1], place + ending) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert_one_line(printed.err, said)
        os.rmdir(f"folder{ending}")
        os.unlink(f"pipe{ending}")
        assert_untouched()
