"""A file that is written whole or not at all: it comes to its place when all of it is on the disk."""

import os
import secrets
import stat
from contextlib import contextmanager, suppress


def _unfinished(target):
    """A new name in the folder of a file; not made from the file's own, which may be as long as a name can be."""
    return os.path.join(os.path.dirname(target), f".convgrad_cy.{secrets.token_hex(8)}.unfinished")


def check(path):
    """Raise OSError or ValueError where ``replaced(path)`` could not work: before the work and not after it."""
    target = os.path.realpath(path)
    with suppress(FileNotFoundError):
        # Replacing a file needs no permission to write to it, and would turn a device into a plain file.
        if not (stat.S_ISREG(os.stat(target).st_mode) and os.access(target, os.W_OK)):
            raise OSError("not a plain file, or write-protected")
    # Only the system knows whether a file can be made: rights, read-only disks and full ones are its matter.
    unfinished = _unfinished(target)
    with open(unfinished, "xb"):
        pass
    os.unlink(unfinished)


@contextmanager
def replaced(path):
    """A new binary file, which takes the place of ``path`` at the end of the block if that ends well.

    Whoever looks finds what was there before or all of the new file, after a crash of the machine too. A link stays
    one. A process that is killed leaves ``.convgrad_cy.*.unfinished`` beside it.
    """
    target = os.path.realpath(path)
    unfinished = _unfinished(target)
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
