"""What a command says, wherever standard output leads: to a full disk, to ASCII alone, to a reader that has left."""

import os
import sys
from contextlib import suppress


class NotPrinted(Exception):
    """Standard output takes no more; the message says why."""


class ReaderLeft(NotPrinted):
    """Standard output is a pipe that nobody reads any more, as behind ``| head``."""


def one_line(error):
    """What an exception says, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def reason(error):
    """What an exception says, without the file name, which the message already has."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _discard(stream):
    """Send what a stream still holds nowhere: Python would try to write it again at its end, and complain."""
    with suppress(OSError):  # a stream that is no file of the system's
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _write(stream, text):
    """All of a text, now; what the stream's encoding does not have is written as an escape."""
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
        stream.flush()
    except OSError:
        _discard(stream)
        raise


def line(text="", end="\n"):
    """Print a line of the report; `NotPrinted` if that cannot be. A standard output that is closed wants none."""
    if sys.stdout is None:
        return
    try:
        _write(sys.stdout, text + end)
    except BrokenPipeError as error:
        raise ReaderLeft(reason(error)) from error
    except OSError as error:
        raise NotPrinted(reason(error)) from error


def complain(text):
    """Print a line to standard error, or, where that cannot be, nothing: the exit status says it too."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        _write(sys.stderr, f"{text}\n")
