"""The functions on NumPy arrays, by the kernels of one instruction set, which this process has chosen at its import."""

import numpy as np

import convgrad_cy as cg

from ... import cpu
from ..output import one_line
from . import forks
from .bounds import allowed
from .cases import CASES, integers, reals, spoilt
from .functions import FORMATS, FUNCTIONS
from .storage import STORAGES
from .tally import Tally


def compare_integers(tally, case, function, storage, to_device=None, to_host=None):
    """Exact results, in both formats. The last two functions convert arrays for the function, and its results back."""
    tensors, exact = integers(case, storage.is_float)
    tensors = tensors.map(storage.store)
    for formats in FORMATS:
        call = f"{function.name}, {case.problem}, {formats[0]}, integers"
        for letter, result in function.call(case, tensors, formats, convert=to_device).items():
            expected = storage.read(storage.store(getattr(exact, letter)))
            tally.compare(call, storage.read(result if to_host is None else to_host(result)), expected, 0)


def _compare_reals(tally, case, function, storage):
    """The errors that the accuracy contract allows, with both algorithms."""
    tensors, exact, magnitudes = reals(case, storage.name)
    tensors = tensors.map(storage.store)
    for algorithm in ("direct", "auto"):
        for letter, result in function.call(case, tensors, algorithm=algorithm).items():
            expected = getattr(exact, letter)
            bound = allowed(storage, algorithm, expected, getattr(magnitudes, letter), case.terms(letter))
            tally.compare(f"{function.name}, {case.problem}, {algorithm}", storage.read(result), expected, bound)


def _compare_nonfinite(tally, case, function, storage):
    """NaN and infinity must reach exactly the outputs whose terms read them."""
    for letter, value in zip(function.reads, (np.nan, np.inf, np.nan), strict=False):
        tensors, finite = spoilt(case, letter, value)
        for made, result in function.call(case, tensors.map(storage.store), algorithm="auto").items():
            if made != letter:
                same = np.array_equal(np.isfinite(storage.read(result)), getattr(finite, made))
                text = f"{function.name}, {case.problem}: {value} in {letter} reaches wrong elements of {made}"
                tally.check(same, text)


def _compare_threads(tally, case, function, storage):
    """The bits must be the same for any number of threads. Returns the number of results."""
    tensors = reals(case, storage.name).tensors if storage.is_float else integers(case, False).tensors
    tensors, before = tensors.map(storage.store), tally.checked
    found = {}
    for count in sorted({1, 2, 3, cg.get_num_threads()}):
        with cg.num_threads(count):
            found[count] = function.call(case, tensors, algorithm="auto")
    first, *others = found
    for count in others:
        for letter, result in found[count].items():
            same = result.tobytes() == found[first][letter].tobytes()
            text = f"{function.name}, {case.problem}: {count} threads give other bits of {letter} than {first}"
            tally.check(same, text)
    return tally.checked - before


def _compare_all(tally, case, function, storage):
    """All comparisons of a layer. Returns the number of results that were compared between threads."""
    compare_integers(tally, case, function, storage)
    if storage.is_float:
        _compare_reals(tally, case, function, storage)
        if not case.is_large:
            _compare_nonfinite(tally, case, function, storage)
    return _compare_threads(tally, case, function, storage) if case.is_large else 0


def of_function(function, storage, cases=CASES):
    """The record of a function and a type."""
    tally, threads = Tally(cpu.isa, storage.name), 0
    for case in cases:
        try:
            threads += _compare_all(tally, case, function, storage)
        except Exception as error:  # every exception of a legal call is a failure
            tally.check(False, f"{function.name}, {case.problem}: {type(error).__name__}: {one_line(error)}")
    return tally.record(function=function.name, column=function.column, threads=threads)


def records():
    """One record for each type and function, and one of a forked process."""
    for storage in STORAGES.values():
        for function in FUNCTIONS:
            yield of_function(function, storage)
    yield forks.record(cpu.isa)
