"""How a command ends that is cut short: nobody reads its output any more, or Ctrl-C."""

import os
import sys

#: What a shell makes of a process that SIGPIPE or SIGINT has ended: 128 and the number of the signal.
READER_LEFT, INTERRUPTED = 141, 130


def status_of(main):
    """The exit status of ``main()``, with no traceback where the command is cut short."""
    try:
        try:
            return main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, and not at Python's end, where it could only complain
    except BrokenPipeError:
        # The stream still holds what it could not write: Python would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    except KeyboardInterrupt:
        return INTERRUPTED
