"""Every command of ``python -m convgrad_cy`` has help and ends on Ctrl-C; the program has a version."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import status_of

import convgrad_cy as cg
from convgrad_cy.cli import run
from convgrad_cy.cli.check import processes
from convgrad_cy.cli.demo import training
from convgrad_cy.cli.problem_text import LETTERS


@pytest.mark.parametrize("command", [(), ("info",), ("check",), ("demo",), ("explain",), ("compile",), ("run",)])
def test_help(command, capsys):
    assert status_of(*command, "--help") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: {' '.join(['convgrad_cy', *command])} [-h]")
    assert "%%" not in text and "%(" not in text, "argparse has not replaced it"


def test_help_of_explain_has_the_letters(capsys):
    assert status_of("explain", "--help") == 0
    assert LETTERS in capsys.readouterr().out


@pytest.mark.checkout
def test_the_document_has_the_letters():
    assert LETTERS in (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


def test_version(capsys):
    assert status_of("--version") == 0
    assert capsys.readouterr().out == f"convgrad_cy {cg.__version__}\n"


def interrupt(*arguments, **keywords):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "module, function, command",
    [
        (training, "train", ("demo",)),
        (processes, "records", ("check",)),
        (run, "read_arrays", ("run", "conv", "in.npz", "out.npz")),
    ],
)
def test_an_interrupted_command(module, function, command, monkeypatch, capsys):
    monkeypatch.setattr(module, function, interrupt)
    assert status_of(*command) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_during_the_demo():
    command = [sys.executable, "-u", "-W", "error", "-m", "convgrad_cy", "demo", "--epochs", "100000"]
    # A shell starts its background jobs with SIGINT ignored, and children inherit this. Here the signal has to arrive.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, ignored)
    with process:
        try:
            for line in process.stdout:
                if "epochs" in line:  # the training begins
                    break
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, said) == (130, "")
