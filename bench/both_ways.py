"""The rows of a layer by two routes in turn, in one process: each result is verified, then both are timed.

The other route is the one that the planner takes without a family or a form of the usual one (``routes.py``).
"""

import time
import zlib
from functools import cache
from math import inf

import numpy as np

from . import routes, suites, verify
from .case import written_plainly
from .measure import ROUNDS, SLOW
from .peers.convgrad_cy import Library, arrays_of, poisoned
from .worker import one_line, relative_error, shortest

#: A row is a finding if the other route is this many times faster; it is timed twice then, to be sure.
FINDING = 1.15
#: Above this ratio the other route is clearly slower, and its timing stops.
CLEAR = 2.0


class Tensors:
    """The random tensors of a layer in one type, and the float64 results that are expected of its kernels."""

    def __init__(self, case):
        rng = np.random.default_rng(zlib.crc32(case.name.encode()))
        self.case = case
        self.operands = [verify.draw(shape, case.dtype, rng) for shape in (case.x, case.w, case.y)]
        self.expected = cache(self._expected)

    def _expected(self, kernel):
        result = Library(None).reference(self.case, kernel, *self.operands)
        verify.spot_check(self.case, kernel, result, *self.operands, np.random.default_rng(1))
        return result

    def is_within_rounding(self, kernel, result):
        """Whether a result is within the contract of a plain sum, however many terms that has."""
        if self.case.dtype not in ("float32", "float64"):
            return False
        magnitudes = Library(None).reference(self.case, kernel, *map(np.abs, self.operands))
        return verify.is_within_rounding(self.case, kernel, result, self.expected(kernel), magnitudes)


class Run:
    """One route on given inputs, with an array of its own for the result: a call without arguments."""

    def __init__(self, route, inputs, out):
        self.work, self.inputs, self.out = route.ready(), inputs, out
        self.is_plain = route.family != "winograd"  # it adds the products of the definition

    def __call__(self):
        self.work.run(*self.inputs, self.out)

    def verified(self, row, tensors):
        """Seconds of the first call, whose result must be within the contract."""
        start = time.perf_counter()
        self()
        seconds = time.perf_counter() - start
        result = written_plainly(row.case.layout, row.kernel, self.out)
        fault = verify.fault(relative_error(result, tensors.expected(row.kernel)), row.case.dtype)
        if fault is not None and not (self.is_plain and tensors.is_within_rounding(row.kernel, result)):
            raise verify.Wrong(fault)
        return seconds


def in_turn(calls, seconds):
    """The shortest time of each of two calls, which take turns: every second round goes backwards."""
    best = [inf, inf]
    for turn in range(ROUNDS):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            best[i] = min(best[i], shortest(calls[i], seconds / ROUNDS)[0])
        if turn and best[1] > CLEAR * best[0]:
            break
    return best


def compared(row, tensors, usual, other, seconds):
    """The seconds of both routes, or the reason why a result is wrong or missing."""
    first, second, out = arrays_of(row.case, row.kernel, *tensors.operands)
    outs = out, poisoned(out.shape, out.dtype)
    calls, found = [], []
    for which, route, array in zip(("usual", "other"), (usual, other), outs, strict=True):
        try:
            calls.append(Run(route, (first, second), array))
            found.append(calls[-1].verified(row, tensors))
        except verify.Wrong as fault:
            return {"wrong": f"{which} route: {fault}"}
        except Exception as error:
            return {"failed": f"{which} route: {one_line(error)}"}
    if max(found) < SLOW:
        found = in_turn(calls, seconds)
        if found[0] > FINDING * found[1]:
            found = map(min, found, in_turn(calls, 2 * seconds))
    return dict(zip(("seconds", "other_seconds"), found, strict=True))


def rows_of_layer(layer, options):
    """Compare the routes of a layer's rows: a dictionary for each row and each name that its route can be without."""
    found = []
    tensors = cache(lambda dtype: Tensors(layer.case("NCX", dtype)))
    for row in suites.rows((layer.suite,), options.op, options.layout, options.dtype, layers=[layer]):
        usual = routes.Route.of(routes.task_of(row))
        for name, other in usual.others(options.without):
            found.append(
                {
                    "suite": layer.suite,
                    "layer": layer.name,
                    "kernel": row.kernel,
                    "layout": row.case.layout,
                    "dtype": row.case.dtype,
                    "without": name,
                    "usual": str(usual),
                    "other": str(other),
                    **compared(row, tensors(row.case.dtype), usual, other, options.seconds),
                }
            )
    return found
