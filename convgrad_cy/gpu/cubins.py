"""A folder of compiled kernels. Later processes load them from it. They do not depend on CuPy's version.

The name of a file has the architecture, the version of NVRTC, a digest of the text and the options, and a digest of the
file. A damaged file does not have the second digest, and the kernel is compiled again. Processes that compile the same
kernel at the same time each write the whole file, and the last one stays.
"""

import atexit
import os
import shutil
import tempfile
import warnings
from hashlib import sha256
from pathlib import Path

from .. import atomic_file
from ..memo.locks import ForkSafeLock
from . import compiler

#: The environment variable with the folder.
VARIABLE = "CONVGRAD_CY_CACHE_DIR"


def folder():
    """The folder of compiled kernels. It may not exist yet."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    caches = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return Path(caches or os.path.expanduser("~/.cache")) / "convgrad_cy"


def _digest(data):
    return sha256(data).hexdigest()[:32]


def _name_of(text, options):
    """The name of a kernel's file without the digest of the file."""
    major, minor = compiler.version()
    arch = next(option for option in options if option.startswith("-arch=")).removeprefix("-arch=")
    return f"{arch}-nvrtc{major}.{minor}-{_digest(chr(0).join((*options, text)).encode())}"


def _file_name(name, cubin):
    return f"{name}-{_digest(cubin)}.cubin"


def _is_whole(path, name):
    try:
        return path.name == _file_name(name, path.read_bytes())
    except OSError:
        return False


def found(text, options, place=None):
    """The path of a kernel's cubin in the folder ``place`` (by default `folder`), or None."""
    name = _name_of(text, options)
    files = sorted((place or folder()).glob(f"{name}-*.cubin"))
    return next((path for path in files if _is_whole(path, name)), None)


def keep(text, options, cubin, place=None):
    """Write a kernel's cubin into the folder and return its path, or raise OSError."""
    place = place or folder()
    place.mkdir(parents=True, exist_ok=True)
    path = place / _file_name(_name_of(text, options), cubin)
    with atomic_file.replaced(path, is_durable=False) as file:
        file.write(cubin)
    return path


class _OwnFolder:
    """A folder that is removed at the end of the process, for a process that cannot write to the folder of all."""

    def __init__(self):
        self._lock, self.path = ForkSafeLock(), None

    def made(self, error):
        """The path of this folder. The first call makes it and warns with the reason ``error``."""
        with self._lock.held:
            if self.path is None:
                self.path = Path(tempfile.mkdtemp(prefix="convgrad_cy."))
                atexit.register(_remove, self.path, os.getpid())
                warnings.warn(
                    f"compiled GPU kernels are kept for this process only, because {folder()} cannot be written "
                    f"({error.strerror or error}): set {VARIABLE} to another folder",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return self.path


_own = _OwnFolder()


def _remove(path, process):
    """Remove a folder, unless a forked child of its process ends."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def path_of(text, options):
    """The path of a kernel's cubin, which is compiled if no whole file has it."""
    path = found(text, options)
    if path is None and _own.path is not None:
        path = found(text, options, _own.path)
    if path is not None:
        return path
    cubin = compiler.compiled(text, options)
    try:
        return keep(text, options, cubin)
    except OSError as error:
        return keep(text, options, cubin, _own.made(error))
