"""The functions in a forked process, as in a data loader: they must not wait forever, and have the parent's bits."""

import os
import select
import signal
import warnings
from hashlib import sha256

from .cases import CASES, reals
from .functions import FUNCTIONS
from .storage import STORAGES
from .tally import Tally

#: Seconds that the forked process may take. It takes less than one, and a minute in an emulator.
PATIENCE = 120


def _bits():
    """A digest of the results of each function, for layers that several threads compute."""
    storage, digests = STORAGES["float32"], []
    for function in FUNCTIONS:
        digest = sha256()
        for case in CASES:
            if case.is_large:
                tensors = reals(case, storage.name).tensors.map(storage.store)
                for result in function.call(case, tensors, algorithm="auto").values():
                    digest.update(result.tobytes())
        digests.append(digest.digest())
    return digests


def _forked(pipe):
    """Run in the forked process: send the digests and end, without the parent's cleanup."""
    try:
        os.write(pipe, b"".join(_bits()))
    finally:
        os._exit(0)


def _answer():
    """The bytes that a forked process sends, or as many as it has sent when the time is over."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks while OpenMP has threads
        child = os.fork()
    if not child:
        _forked(writing)
    os.close(writing)
    try:
        return os.read(reading, 1 << 16) if select.select([reading], [], [], PATIENCE)[0] else b""
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def record(isa):
    """The record of a forked process with the kernels ``isa``."""
    tally = Tally(isa, "fork")
    if not hasattr(os, "fork"):
        return tally.record(note="not checked: this system has no fork")
    own = _bits()
    answer, size = _answer(), len(own[0])
    for place, (function, digest) in enumerate(zip(FUNCTIONS, own, strict=True)):
        found = answer[place * size : (place + 1) * size]
        said = "gives other bits" if found else "gives no answer"
        tally.check(found == digest, f"{function.name} {said} in a forked process")
    return tally.record()
