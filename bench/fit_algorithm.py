"""``python -m bench.fit_algorithm [SUITES [TYPES]]``: measures both algorithms on layers and fits costs.Costs.each.

It prints the table and the quality of the package's present choices: the time that they lose, and the wrong rows.
"""

import json
import math
import os
import sys

import numpy as np

from convgrad_cy import calls, cpu, dtypes
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd import tilings as algorithm
from convgrad_cy.cpu.winograd import walks
from convgrad_cy.cpu.winograd.work import direct_work, tiled_work
from convgrad_cy.problem import DGRAD, FPROP, WGRAD

from .peers import ALGORITHM
from .peers.convgrad_cy import Library
from .routes import task_of
from .suites import NAMES, rows
from .verify import draw
from .worker import shortest

SECONDS, ROUNDS = 0.02, 6
#: Larger layers take long and behave as smaller ones do. The model does not cover layers with fewer channels.
MOST_PRODUCTS, LEAST_CHANNELS = 2e10, 16
#: A tiling that takes this many times as long as the direct algorithm is left out of the fit: it is never chosen.
MOST_TIMES = 2.0
#: Each fit: (whether it is about the direct algorithm, its operations, the names of its costs).
FITTED = (
    (True, {FPROP, DGRAD}, ("direct product", "direct filter")),
    (True, {WGRAD}, ("direct wgrad product", "direct filter")),
    (
        False,
        {FPROP, DGRAD},
        ("product", "value", "filter", "kept filter", "scattered filter", "gathered", "load", "sum"),
    ),
    (False, {WGRAD}, ("wgrad product", "wgrad value", "wgrad load", "wgrad sum", "wgrad slice", "gathered")),
)
#: A row whose relative error is greater than this gets less weight, in proportion to the error.
USUAL_ERROR = 0.05


def shapes(case):
    return case.x, case.w, case.y


def call_of(row, chosen, arrays):
    """The row's operation as a call without arguments, by the algorithm ``chosen``."""
    kept = os.environ.get(ALGORITHM)
    os.environ[ALGORITHM] = chosen
    try:
        return Library(threads=None).operation(row.case, row.kernel, *arrays)
    finally:
        del os.environ[ALGORITHM]
        if kept is not None:
            os.environ[ALGORITHM] = kept


def forget():
    """Empty the caches of choices, so that the next calls choose anew."""
    algorithm.decide.cache_clear()
    calls.forget()


def points_of(operation, problem, tiling):
    return walks.points_of(tiling, [part.walk for part in walks.tile_walks(operation, problem).parts])


def candidates(operation, problem, tile):
    """The tilings that can be chosen. If several tilings give the same points, the first one stands for them."""
    found = {}
    for tiling in algorithm.TILINGS:
        if not algorithm.is_accurate(operation, problem, tiling):
            continue
        if winograd.choose(operation, problem, tiling, tile).memory <= algorithm.SCRATCH_BYTES:
            found.setdefault(str(points_of(operation, problem, tiling)), tiling)
    return list(found.values())


def times_of(row, tilings, arrays):
    """Seconds of the direct algorithm (None) and of each tiling, in turn: the shortest call of all rounds.

    Without tilings, "auto" is direct and multiplies pairs of bfloat16. "direct" does not multiply pairs.
    """
    direct, tiled, kept = call_of(row, "auto", arrays), call_of(row, "winograd", arrays), algorithm.TILINGS
    best = {}
    try:
        for turn in range(ROUNDS):
            for tiling in (None, *tilings)[:: 1 if turn % 2 == 0 else -1]:
                algorithm.TILINGS, call = ((), direct) if tiling is None else ((tiling,), tiled)
                forget()
                call()
                best[tiling] = min(best.get(tiling, math.inf), shortest(call, SECONDS)[0])
    finally:
        algorithm.TILINGS = kept
        forget()
    return best


def measured(suites, names=("float32",)):
    """(name, operation, problem, type, ``times_of``) of every row of these types that the model covers."""
    random = np.random.default_rng(0)
    tile = cpu.this_machine().tile
    by_name = {row.name: row for row in dtypes.TABLE}
    for row in rows(suites, dtypes=names):
        dtype = by_name[row.case.dtype]
        operation, problem, *_ = task_of(row)
        if not tile.tuning.least_tiled_products <= problem.multiplications <= MOST_PRODUCTS:
            continue
        if min(problem.x_channels, problem.y_channels) < LEAST_CHANNELS:
            continue
        if algorithm.tiling_refusal(operation, problem, dtype) is not None:
            continue
        arrays = [draw(shape, dtype.name, random) for shape in shapes(row.case)]
        times = times_of(row, candidates(operation, problem, tile), arrays)
        name = f"{row.case.name} {row.kernel} {row.case.layout} {dtype.name}"
        print(name, *(f"{seconds * 1e3:.2f}" for seconds in times.values()), file=sys.stderr, flush=True)
        yield name, operation, problem, dtype, times


def work_of(operation, problem, dtype, tiling, tile):
    if tiling is None:
        return direct_work(operation, problem, dtype, tile)
    return tiled_work(operation, problem, tiling, tile)


def fitted(samples, names):
    """Non-negative costs with the least squares of relative errors. Rows with great errors have less weight.

    ``samples`` are pairs (work, its seconds on one thread).
    """
    table = np.array([[work.get(name, 0) * 1e-9 / seconds for name in names] for work, seconds in samples])
    weights = np.ones(len(table))
    for _ in range(30):
        costs = not_negative(table * weights[:, None], weights)
        weights = np.maximum(np.abs(table @ costs - 1), USUAL_ERROR) ** -0.5
    return dict(zip(names, costs.tolist(), strict=True))


def not_negative(table, wanted):
    """Least squares. A column whose factor would be negative gets the factor 0."""
    free = list(range(table.shape[1]))
    while True:
        factors = np.linalg.lstsq(table[:, free], wanted, rcond=None)[0]
        if (factors >= 0).all():
            found = np.zeros(table.shape[1])
            found[free] = factors
            return found
        free.pop(int(factors.argmin()))


def fit(found):
    """The table of costs. A name in two fits has the cost of the first one."""
    machine, costs = cpu.this_machine(), {}
    for direct, operations, names in FITTED:
        samples = [
            (work_of(operation, problem, dtype, tiling, machine.tile), seconds * machine.threads)
            for _, operation, problem, dtype, times in found
            for tiling, seconds in times.items()
            if operation in operations and (tiling is None) == direct and problem.groups == 1
            if seconds < MOST_TIMES * times[None]
        ]
        if samples:
            costs = {**fitted(samples, names), **costs}
    return costs


def judge(found):
    """Print the time that the package's choices lose against the best ones."""
    lost, machine = [], cpu.this_machine()
    for name, operation, problem, dtype, times in found:
        tiling = algorithm.tiling_of(operation, problem, dtype, False, machine.tile)
        chosen = times[None]
        if tiling is not None:
            points = points_of(operation, problem, tiling)
            chosen = next(times[other] for other in times if other and points_of(operation, problem, other) == points)
        lost.append(math.log(chosen / min(times.values())))
        if chosen > 1.03 * times[None]:
            print(f"{name}: {chosen / times[None]:.2f} of the direct algorithm's time, {chosen * 1e3:.2f} ms")
        elif lost[-1] > math.log(1.1):
            print(f"{name}: {math.exp(lost[-1]):.2f} of the best choice's time, {chosen * 1e3:.2f} ms")
    if lost:
        print(f"{len(lost)} rows: {math.exp(sum(lost) / len(lost)):.3f} of the best choices' time, geometric mean")


def main(suites=NAMES, names=("float32",)):
    found = list(measured(suites, names))
    print(json.dumps({name: round(cost, 4) for name, cost in fit(found).items()}, indent=4))
    judge(found)


if __name__ == "__main__":
    main(*(argument.split(",") for argument in sys.argv[1:]))
