"""Commands of ``python -m convgrad_cy``, as a user gives them."""

import os
import subprocess
import sys
from pathlib import Path

from convgrad_cy.cli.main import main

#: What stands in for matplotlib where a test is about the file and not about the picture.
PLOT_STAND_IN = Path(__file__).parent / "plot_stand_in"


def start(*arguments, prefix=(), variables=None, stdout=subprocess.PIPE, **options):
    """A process of its own, with warnings as errors; ``variables`` are added to its environment."""
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
