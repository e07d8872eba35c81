"""``python -m convgrad_cy run``: one operation on arrays from a file.

Whatever is wrong with the input is one `BadInput` that says so in one line.
"""

import inspect
import json
import os
import stat
import zipfile
from pathlib import Path

import numpy as np

from .operations import OPERATIONS, attributes_of, call


class BadInput(Exception):
    """The caller's files or attributes cannot be used; the message says why."""


def reason(error):
    """What an exception says, without the file name, which the message already has."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def read_attributes(path):
    """The object in a JSON file, as a dict."""

    def without_duplicates(pairs):
        attributes = dict(pairs)
        if len(attributes) < len(pairs):
            raise ValueError("a name occurs twice")  # json would silently keep the last
        return attributes

    try:
        attributes = json.loads(Path(path).read_text("utf-8"), object_pairs_hook=without_duplicates)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"cannot read attributes from {path!r}: {reason(error)}") from error
    if not isinstance(attributes, dict):
        raise BadInput(f'attributes in {path!r} must be a JSON object such as {{"stride": 2}}')
    return attributes


def check_attributes(name, attributes, arrays):
    """Neither an unknown attribute nor a missing one; what is among the arrays is not missing."""
    known = attributes_of(name)
    for attribute in attributes:
        if attribute not in known:
            raise BadInput(f"{name} has no attribute {attribute!r}; it has {', '.join(known)}")
    for attribute, default in known.items():
        if default is inspect.Parameter.empty and attribute not in attributes and attribute not in arrays:
            raise BadInput(f"{name} needs the attribute {attribute!r}: give it in a JSON file, with --attrs")


def as_bfloat16(array):
    """The .npy format has no bfloat16 and keeps its two bytes without a name."""
    try:
        from ml_dtypes import bfloat16
    except ImportError as error:
        raise BadInput("an array of two-byte elements without a type is bfloat16, which needs ml_dtypes") from error
    return array.view(bfloat16)


def read_arrays(path, names, optional):
    """The arrays called ``names`` in an .npz file, and ``optional`` where there is one; others are left alone."""
    arrays = {}
    try:
        # Opened here and not by NumPy, which leaves a damaged file open.
        with open(path, "rb") as stream:
            if not zipfile.is_zipfile(stream):
                raise BadInput(f"{path!r} is not an .npz file")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as file:
                for name in (*names, optional) if optional in file.files else names:
                    if name not in file.files:
                        raise BadInput(f"{path!r} has no array {name!r}; it has {', '.join(file.files) or 'none'}")
                    array = file[name]
                    if not isinstance(array, np.ndarray):
                        raise BadInput(f"{name!r} in {path!r} is not an array")
                    arrays[name] = as_bfloat16(array) if array.dtype == np.dtype("V2") else array
    except BadInput:
        raise
    except Exception as error:  # a damaged archive raises whatever its decoder happens to meet
        raise BadInput(f"cannot read arrays from {path!r}: {reason(error)}") from error
    return arrays


def check_target(path, inputs):
    """Refuse a target that would not be, or should not be, replaced; before the work and not after it."""
    for source in inputs:
        if os.path.exists(path) and os.path.samefile(path, source):
            raise BadInput(f"{path!r} is also an input, and would be lost")
    # Replacing a file needs no permission to write to it, and would turn a device into a plain file.
    if os.path.exists(path) and not (stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.W_OK)):
        raise BadInput(f"cannot write {path!r}: not a plain file, or write-protected")


def write_arrays(path, arrays):
    """Write an .npz file: all of it or, where that fails, nothing."""
    arrays = {name: a.view("V2") if a.dtype.name == "bfloat16" else a for name, a in arrays.items()}
    try:
        target = os.path.realpath(path)  # a link stays one
        unfinished = f"{target}.{os.getpid()}.unfinished"
        with open(unfinished, "xb") as file:
            try:
                np.savez(file, **arrays)
                file.flush()
                os.replace(unfinished, target)
            except BaseException:
                os.unlink(unfinished)
                raise
    except (OSError, ValueError, MemoryError) as error:  # ValueError: a name that no file can have
        raise BadInput(f"cannot write {path!r}: {reason(error)}") from error


def run(name, attributes_file, source, target):
    """Run the operation ``name`` on the arrays in ``source``; its results go to ``target``."""
    operation = OPERATIONS[name]
    attributes = read_attributes(attributes_file) if attributes_file else {}
    arrays = read_arrays(source, operation.arrays, operation.shape)
    check_attributes(name, attributes, arrays)
    check_target(target, [file for file in (source, attributes_file) if file])
    try:
        results = dict(zip(operation.results, call(name, arrays, attributes), strict=True))
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:  # all of the shims' derive from the first three
        raise BadInput(f"{name}: {reason(error)}") from error
    write_arrays(target, results)
    for name, result in results.items():
        print(f"{name}: {result.dtype.name} {result.shape} -> {target}")
