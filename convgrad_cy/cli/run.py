"""``python -m convgrad_cy run``: one operation on arrays from a file.

Every error of the input raises `BadInput` with a message of one line.
"""

import inspect
import json
import os
import stat
import zipfile
from contextlib import contextmanager

import numpy as np

from .. import atomic_file
from .._repeat import bound_arrays
from .operations import OPERATIONS, attributes_of, call
from .output import reason

#: The largest JSON file that is read. It may be a pipe, which need not end.
MAX_ATTRIBUTES = 1 << 20


class BadInput(Exception):
    """The caller's files or attributes cannot be used; the message has the reason."""


def read_attributes(path):
    """The object in a JSON file, as a dict."""

    def without_duplicates(pairs):
        attributes = dict(pairs)
        if len(attributes) < len(pairs):
            raise ValueError("a name occurs twice")  # json would silently keep the last
        return attributes

    try:
        with open(path, "rb") as stream:
            text = stream.read(MAX_ATTRIBUTES + 1)
        if len(text) > MAX_ATTRIBUTES:
            raise ValueError(f"it must have at most {MAX_ATTRIBUTES} bytes")
        # Some programs begin UTF-8 with a mark that JSON does not have.
        attributes = json.loads(text.decode("utf-8-sig"), object_pairs_hook=without_duplicates)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"cannot read attributes from {path!r}: {reason(error)}") from error
    if not isinstance(attributes, dict):
        raise BadInput(f'attributes in {path!r} must be a JSON object such as {{"stride": 2}}')
    return attributes


def check_attributes(name, attributes, arrays):
    """Refuse unknown and missing attributes. An attribute among the arrays is not missing."""
    known = attributes_of(name)
    for attribute in attributes:
        if attribute not in known:
            raise BadInput(f"{name} has no attribute {attribute!r}; it has {', '.join(known)}")
    for attribute, default in known.items():
        if default is inspect.Parameter.empty and attribute not in attributes and attribute not in arrays:
            raise BadInput(f"{name} needs the attribute {attribute!r}: give it in a JSON file, with --attrs")


def as_bfloat16(array):
    """View elements of two bytes as bfloat16, because the .npy format has no name for this type."""
    try:
        from ml_dtypes import bfloat16
    except ImportError as error:
        raise BadInput("an array of two-byte elements without a type is bfloat16, which needs ml_dtypes") from error
    return array.view(bfloat16)


def check_size(path, name, archive, max_bytes):
    """Refuse an array by its unpacked size in the archive, which may be far larger than the file."""
    member = name if name in archive.namelist() else f"{name}.npy"
    size = archive.getinfo(member).file_size
    if size > max_bytes:
        raise BadInput(f"--max-bytes must be at least {size} for the array {name!r} in {path!r}, not {max_bytes}")


def check_archive(path, stream):
    """Refuse a file that is no zip archive, with as much help as its first bytes give."""
    start = stream.read(6)
    if start == b"\x93NUMPY":
        raise BadInput(f"{path!r} is not an .npz file but an .npy file: numpy.savez writes arrays with their names")
    if not (start.startswith(b"PK") and zipfile.is_zipfile(stream)):
        raise BadInput(f"{path!r} is not an .npz file")
    stream.seek(0)


def read_arrays(path, names, optional, max_bytes):
    """The arrays called ``names`` in an .npz file, and ``optional`` if it is there. Others are not read."""
    arrays = {}
    try:
        # An archive is read from its end, and a device or a pipe may have none. Opening a pipe may also take forever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BadInput(f"{path!r} must be a plain file, not a folder, a pipe or a device")
        # Open the file here, because NumPy leaves a damaged file open.
        with open(path, "rb") as stream:
            check_archive(path, stream)
            with np.load(stream, allow_pickle=False) as file:
                for name in (*names, optional) if optional in file.files else names:
                    if name not in file.files:
                        raise BadInput(f"{path!r} has no array {name!r}; it has {', '.join(file.files) or 'none'}")
                    check_size(path, name, file.zip, max_bytes)
                    array = file[name]
                    if not isinstance(array, np.ndarray):
                        raise BadInput(f"{name!r} in {path!r} is not an array")
                    arrays[name] = as_bfloat16(array) if array.dtype == np.dtype("V2") else array
    except BadInput:
        raise
    except Exception as error:  # a damaged archive can raise any exception of its decoder
        raise BadInput(f"cannot read arrays from {path!r}: {reason(error)}") from error
    return arrays


def check_target(path, inputs):
    """Refuse a target that cannot or must not be replaced. Called before the operation runs."""
    for source in inputs:
        if os.path.exists(path) and os.path.samefile(path, source):
            raise BadInput(f"{path!r} is also an input, and would be lost")
    try:
        atomic_file.check(path)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise BadInput(f"cannot write {path!r}: {reason(error)}") from error


def write_arrays(path, arrays):
    """Write an .npz file: all of it, or nothing after an error."""
    arrays = {name: a.view("V2") if a.dtype.name == "bfloat16" else a for name, a in arrays.items()}
    try:
        with atomic_file.replaced(path) as file:
            np.savez(file, **arrays)
    except (OSError, ValueError, MemoryError) as error:
        raise BadInput(f"cannot write {path!r}: {reason(error)}") from error


@contextmanager
def bounded(max_bytes):
    """Limit new arrays in this block to ``max_bytes``; larger ones raise MemoryError."""
    bound_arrays(max_bytes, "--max-bytes")
    try:
        yield
    finally:
        bound_arrays(None, None)


def run(name, attributes_file, source, target, max_bytes):
    """Run the operation ``name`` on the arrays in ``source``; its results go to ``target``. Returns a line for each.

    No array, read or computed, has more than ``max_bytes``.
    """
    operation = OPERATIONS[name]
    attributes = read_attributes(attributes_file) if attributes_file else {}
    arrays = read_arrays(source, operation.arrays, operation.shape, max_bytes)
    check_attributes(name, attributes, arrays)
    check_target(target, [file for file in (source, attributes_file) if file])
    try:
        with bounded(max_bytes):
            results = dict(zip(operation.results, call(name, arrays, attributes), strict=True))
    except (
        TypeError,
        ValueError,
        RuntimeError,
        MemoryError,
    ) as error:  # all exceptions of the shims derive from the first three
        raise BadInput(f"{name}: {reason(error)}") from error
    write_arrays(target, results)
    return [f"{name}: {result.dtype.name} {result.shape} -> {target}" for name, result in results.items()]
