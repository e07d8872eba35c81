"""Commands of ``python -m convgrad_cy``, as a user gives them."""

import subprocess
import sys

from convgrad_cy.__main__ import main


def start(*arguments):
    """A process of its own, with warnings as errors."""
    command = [sys.executable, "-W", "error", "-m", "convgrad_cy", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def status_of(*arguments):
    """The exit status of a command that runs in this process."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as error:
        return error.code


def assert_one_line(text, said):
    assert text.startswith("convgrad_cy") and ": error: " in text
    assert text.count("\n") == 1 and text.endswith("\n")
    assert said in text
