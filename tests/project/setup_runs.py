"""Runs of setup.py in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

CHILD = Path(__file__).with_name("build_child.py")


def child(*arguments, variables=None, text=None):
    command = [sys.executable, CHILD, *arguments]
    environment = os.environ | (variables or {})
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, input=text)
