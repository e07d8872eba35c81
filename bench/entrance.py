"""The end of a command that is cut short because nobody reads its output any more, or by Ctrl-C."""

import os
import sys

#: Exit statuses that a shell gives a process that SIGPIPE or SIGINT has ended: 128 and the number of the signal.
READER_LEFT, INTERRUPTED = 141, 130


def status_of(main):
    """The exit status of ``main()``. A command that is cut short prints no traceback."""
    try:
        try:
            return main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # Python's own flush at exit could only complain
    except BrokenPipeError:
        # The stream still holds the output that it could not write. Python would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    except KeyboardInterrupt:
        return INTERRUPTED
