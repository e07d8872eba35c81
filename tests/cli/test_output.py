"""Commands whose standard output takes no more, or has only ASCII. Each runs as a process, as from a shell."""

import os
import sys

import numpy as np
import pytest
from commands import PLOT_STAND_IN, assert_one_line, start

from convgrad_cy.cli import output

RUN = ("run", "conv", "in.npz", "ü.npz")
COMMANDS = {
    "help": ("--help",),
    "help of run": ("run", "--help"),
    "help of explain": ("explain", "--help"),
    "version": ("--version",),
    "explain": ("explain", "conv", "--problem", "mb1ic2ih8oc2kh3"),
    "info": ("info",),
    "run": RUN,
    "demo": ("demo", "--epochs", "1"),
}
#: Python writes its output at its end, or at once. The first fails after the work, the second in the middle of it.
BUFFERING = {"buffered": "", "unbuffered": "1"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with arrays to run on."""
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", x=np.ones((1, 1, 4, 4)), w=np.ones((1, 1, 3, 3)))
    return tmp_path


def assert_result():
    """Assert that the result exists and is complete, and that no other file exists."""
    assert sorted(os.listdir()) == ["in.npz", "ü.npz"]
    with np.load("ü.npz") as file:
        np.testing.assert_array_equal(file["y"], np.full((1, 1, 2, 2), 9.0))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("buffering", BUFFERING)
@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk(name, buffering, folder):
    with open("/dev/full", "w") as full:
        process = start(*COMMANDS[name], stdout=full, variables={"PYTHONUNBUFFERED": BUFFERING[buffering]})
    if name == "run":
        said = "convgrad_cy run: warning: 'ü.npz' is in place, but the report of it cannot be printed: No space left"
        assert process.returncode == 0
        assert process.stderr.startswith(said) and process.stderr.count("\n") == 1
        assert_result()
    else:
        assert process.returncode == 2
        assert_one_line(process.stderr, "the report cannot be printed: No space left on device")


@pytest.mark.skipif(sys.platform == "win32", reason="closed pipes say something else there")
@pytest.mark.parametrize("buffering", BUFFERING)
@pytest.mark.parametrize("name", COMMANDS)
def test_reader_that_has_left(name, buffering, folder):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = start(*COMMANDS[name], stdout=writer, variables={"PYTHONUNBUFFERED": BUFFERING[buffering]})
    finally:
        os.close(writer)
    assert (process.returncode, process.stderr) == (0 if name == "run" else 141, "")
    if name == "run":
        assert_result()


@pytest.mark.skipif(sys.platform == "win32", reason="sh closes the stream")
@pytest.mark.parametrize("name", ["info", "run", "demo"])
def test_closed_standard_output(name, folder):
    """A closed standard output must lose the report only. The status is the demo's verdict: one epoch is not enough."""
    process = start(*COMMANDS[name], prefix=("sh", "-c", 'exec "$@" >&-', "sh"))
    assert (process.returncode, process.stdout, process.stderr) == (1 if name == "demo" else 0, "", "")
    if name == "run":
        assert_result()


@pytest.mark.parametrize("buffering", BUFFERING)
def test_ascii_alone(buffering, folder):
    """Characters beyond ASCII must be printed as escapes."""
    variables = {"PYTHONIOENCODING": "ascii", "PYTHONUNBUFFERED": BUFFERING[buffering], "PYTHONPATH": python_path()}
    process = start(*RUN, variables=variables)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "y: float64 (1, 1, 2, 2) -> \\xfc.npz\n"
    assert_result()
    process = start("demo", "--epochs", "1", "--plot", "ü.png", variables=variables)
    assert (process.returncode, process.stderr) == (1, "")
    assert "plot                   \\xfc.png\n" in process.stdout
    assert os.path.exists("ü.png")
    for command in map(COMMANDS.get, ("info", "help of run", "help of explain", "explain")):
        process = start(*command, variables=variables)
        assert (process.returncode, process.stderr) == (0, "")
        assert process.stdout.isascii() and process.stdout.count("\n") > 5


def python_path():
    """The Python path of this process, with the stand-in for matplotlib before it."""
    return os.pathsep.join(filter(None, [str(PLOT_STAND_IN), os.environ.get("PYTHONPATH")]))


@pytest.mark.skipif(os.name != "posix", reason="a name of any bytes")
def test_a_name_that_is_no_text(folder):
    process = start("run", "conv", "in.npz", os.fsdecode(b"\xff.npz"), variables={"PYTHONIOENCODING": "utf-8"})
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "y: float64 (1, 1, 2, 2) -> \\udcff.npz\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", [("run", "conv", "missing.npz", "out.npz"), ("train",)])
def test_the_status_says_it_where_standard_error_cannot(command, folder):
    for redirected in ("2> /dev/full", "2>&-"):
        process = start(*command, prefix=("sh", "-c", f'exec "$@" {redirected}', "sh"))
        assert (process.returncode, process.stdout, process.stderr) == (2, "", "")


def test_help_says_what_the_statuses_mean():
    process = start("--help")
    assert (process.returncode, process.stderr) == (0, "")
    assert [line.split()[0] for line in process.stdout.partition("exit status:\n")[2].splitlines()] == [
        *("0", "1", "2", "130", "141")
    ]


def test_a_stream_that_is_no_file(monkeypatch):
    """If the caller of main() has replaced standard output by another object, its failure must be reported, too."""

    class Full:
        encoding = "utf-8"

        def write(self, text):
            raise OSError(28, "No space left on device")

        def fileno(self):
            raise OSError("it has no number")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(output.NotPrinted, match="No space left on device"):
        output.line("text")
