"""Commands of ``python -m convgrad_cy``, as a user enters them."""

import os
import subprocess
import sys
from pathlib import Path

from convgrad_cy.cli.main import main

#: A stand-in for matplotlib, for tests of the file and not of the picture.
PLOT_STAND_IN = Path(__file__).parent / "plot_stand_in"


def start(*arguments, prefix=(), variables=None, stdout=subprocess.PIPE, **options):
    """A separate process, with warnings as errors. ``variables`` are added to its environment."""
    command = [*prefix, sys.executable, "-W", "error", "-m", "convgrad_cy", *map(str, arguments)]
    environment = os.environ | (variables or {})
    streams = {"stdout": stdout, "stderr": subprocess.PIPE}
    return subprocess.run(command, **streams, env=environment, text=True, timeout=300, **options)


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
