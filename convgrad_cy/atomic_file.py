"""A file that is written whole or not at all: it is renamed to its path when all of it is on the disk."""

import os
import secrets
import stat
from contextlib import contextmanager, suppress


def _unfinished(target):
    """A new path in the folder of a file. It does not contain the file's name, which may have the maximal length."""
    return os.path.join(os.path.dirname(target), f".convgrad_cy.{secrets.token_hex(8)}.unfinished")


def check(path):
    """Raise OSError or ValueError if ``replaced(path)`` could not work. Called before a long computation."""
    target = os.path.realpath(path)
    with suppress(FileNotFoundError):
        # Replacing a file needs no permission to write to it, and would turn a device into a plain file.
        if not (stat.S_ISREG(os.stat(target).st_mode) and os.access(target, os.W_OK)):
            raise OSError("not a plain file, or write-protected")
    # Only the system knows whether it can make a file: permissions, read-only and full disks decide.
    unfinished = _unfinished(target)
    with open(unfinished, "xb"):
        pass
    os.unlink(unfinished)


@contextmanager
def replaced(path, is_durable=True):
    """Open a new binary file, which replaces ``path`` at the end of the block if the block raises nothing.

    Readers find the old file or the whole new one. If it ``is_durable``, this holds after a crash of the machine, too.
    A link stays a link. A killed process leaves a file ``.convgrad_cy.*.unfinished`` in the folder.
    """
    target = os.path.realpath(path)
    unfinished = _unfinished(target)
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
