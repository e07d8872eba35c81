"""The file of ``enable(benchmark=FILE)``: JSON that is written whole, with the choices of all processes that use it."""

import fcntl
import json
import os
import time
from contextlib import contextmanager
from typing import NamedTuple

from .. import atomic_file
from .call_texts import operations_of

#: Who computes a result.
OURS, THEIRS = "convgrad_cy", "pytorch"

_FORMAT = "choices of convgrad_cy.torch, version 1"
_LONGEST_WAIT, _PAUSE = 1, 0.01  # seconds


class Choice(NamedTuple):
    """The chosen candidate of a shape, and the shortest time of each one that was measured.

    A candidate is named by the owners of its results, `OURS` or `THEIRS`, with a + between them. If both owners are the
    same, they are written once.
    """

    candidate: str
    microseconds: dict


def _choice(call, found):
    """The `Choice` that was read for a call. AttributeError, KeyError, TypeError or ValueError if it is none."""
    choice = Choice(found["chosen"], {name: float(time) for name, time in found["microseconds"].items()})
    owners = choice.candidate.split("+")
    if not {*owners} <= {OURS, THEIRS} or len(owners) not in {1, len(operations_of(call))}:
        raise ValueError(f"{choice.candidate!r} is no choice of {call!r}")
    missing = {OURS, THEIRS, choice.candidate} - choice.microseconds.keys()
    if missing:
        raise ValueError(f"no time of {min(missing)} for {call!r}")
    return choice


def read(path):
    """The choices of a file: (environment, call) -> `Choice`. A file that does not exist has none."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        return {
            (environment, call): _choice(call, found)
            for environment, calls in content["choices"].items()
            for call, found in calls.items()
        }
    except FileNotFoundError:
        return {}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"benchmark must be the path of a file of choices or of no file, not {path!r} ({reason})"
        ) from error


def _write(path, choices):
    content = {}
    for (environment, call), choice in sorted(choices.items()):
        kept = {"chosen": choice.candidate, "microseconds": choice.microseconds}
        content.setdefault(environment, {})[call] = kept
    with atomic_file.replaced(path) as file:
        file.write(json.dumps({"format": _FORMAT, "choices": content}, indent=1).encode() + b"\n")


@contextmanager
def _alone(path):
    """Keep other processes from merging meanwhile. A process that is stopped, or a file system, may prevent this."""
    folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        end = time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < end:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_PAUSE)
            except OSError:
                break
        yield
    finally:
        os.close(folder)  # unlocks it


def merged(path, mine, key, choice):
    """All choices after ``choice`` of ``key`` was added to the file, unless it has one of this key already."""
    with _alone(path):
        there = read(path)
        choices = {key: choice, **there, **mine}
        if choices != there:
            _write(path, choices)
    return choices
