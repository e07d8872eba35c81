"""The output of a command. Standard output may be a full disk, ASCII only, or a closed pipe."""

import os
import sys
from contextlib import suppress


class NotPrinted(Exception):
    """Standard output cannot be written; the message has the reason."""


class ReaderLeft(NotPrinted):
    """Standard output is a pipe that nobody reads any more, as behind ``| head``."""


def one_line(error):
    """The message of an exception on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def reason(error):
    """The message of an exception without the file name, which the caller's text already has."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _discard(stream):
    """Discard the buffer of a stream. Otherwise Python would try to write it again at exit, and complain."""
    with suppress(OSError):  # a stream without a file descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _write(stream, text):
    """Write a text and flush. Characters that the encoding of the stream lacks become escapes."""
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
    """Print a line of the report, or raise `NotPrinted`. It does nothing if the process has no standard output."""
    if sys.stdout is None:
        return
    try:
        _write(sys.stdout, text + end)
    except BrokenPipeError as error:
        raise ReaderLeft(reason(error)) from error
    except OSError as error:
        raise NotPrinted(reason(error)) from error


def complain(text):
    """Print a line to standard error. Failures are ignored, because the exit status tells of the error, too."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        _write(sys.stderr, f"{text}\n")


def _is_terminal():
    return sys.stdout is not None and sys.stdout.isatty()


def progress(done, total, text):
    """Draw a bar that replaces the terminal's last line. In a file it would be noise, so nothing is written there."""
    if _is_terminal():
        filled = 30 * done // total
        line(f"\r\x1b[K  [{'#' * filled}{'.' * (30 - filled)}] {text}", end="")


def clear_progress():
    """Remove the bar, so that the next line takes its place."""
    if _is_terminal():
        line("\r\x1b[K", end="")
