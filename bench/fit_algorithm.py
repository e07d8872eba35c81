"""``python -m bench.fit_algorithm``: measures both algorithms on the layers of suites.txt and fits algorithm.COSTS.

Prints the table, and how well it chooses: the time lost on all layers by the choices it makes.
"""

import json
import sys
import time

import numpy as np

from convgrad_cy import algorithm, calls, cpu, dtypes
from convgrad_cy.choices import DGRAD, FPROP, WGRAD

from .peers.convgrad_cy import Library
from .suites import NAMES, rows
from .verify import draw

OPERATIONS = {"fprop": FPROP, "dgrad": DGRAD, "wgrad": WGRAD}
SECONDS = 0.03
#: Larger layers behave as others and take long.
MOST_PRODUCTS = 4e9


def shortest(call):
    """The shortest of several calls."""
    call()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


class Found(Exception):
    """Ends a call whose problem is wanted, not its result."""


def problem_of(row):
    """The row's problem, from the arrays that a call of it takes."""

    def stop(operation, problem, *rest):
        raise Found(problem)

    kept, cpu.prepare = cpu.prepare, stop
    try:
        arrays = [np.empty(shape, np.float32) for shape in shapes(row.case)]
        Library(threads=None).operation(row.case, row.kernel, *arrays)()
    except Found as found:
        return found.args[0]
    finally:
        cpu.prepare = kept


def shapes(case):
    return case.x, case.w, case.y


def measured(suites):
    """(work, seconds on one thread) of the direct algorithm and of each tiling, for every row."""
    random = np.random.default_rng(0)
    machine = cpu.machine()._replace(threads=1)
    for row in rows(suites):
        operation = OPERATIONS[row.kernel]
        problem = problem_of(row)
        if problem.multiplications < algorithm.LEAST_PRODUCTS or problem.multiplications > MOST_PRODUCTS:
            continue
        if algorithm.refusal(operation, problem, dtypes.TABLE[2]) is not None:
            continue
        tensors = [draw(shape, "float32", random) for shape in shapes(row.case)]
        call = Library(threads=None).operation(row.case, row.kernel, *tensors)
        kept, gain = algorithm.TILINGS, algorithm.LEAST_GAIN
        name = f"{row.case.name} {row.kernel} {row.case.layout}"
        found = {}
        try:
            for tiling in (None, *kept):
                if tiling is not None and not algorithm._is_accurate(operation, problem, tiling):
                    continue
                algorithm.TILINGS = () if tiling is None else (tiling,)
                force(tiling is not None)
                work = (
                    algorithm.direct_work(operation, problem, machine)
                    if tiling is None
                    else algorithm.tiled_work(operation, problem, tiling, machine)
                )
                found[str(tiling)] = (work, shortest(call) * cpu.threads())
        finally:
            algorithm.TILINGS, algorithm.LEAST_GAIN = kept, gain
            forget()
        print(name, *(f"{seconds * 1e3:.2f}" for _, seconds in found.values()), file=sys.stderr, flush=True)
        yield name, found


def force(tiled):
    """Every call takes the tiling there is, or the direct algorithm without one."""
    forget()
    algorithm.LEAST_GAIN = 0.0 if tiled else float("inf")


def forget():
    """Let the next calls choose anew."""
    algorithm.tiling_of.cache_clear()
    calls.forget()


def fitted(samples):
    """Costs that are not negative and have the least squares of relative errors."""
    names = sorted({name for work, _ in samples for name in work})
    table = np.array([[work.get(name, 0) * 1e-9 / seconds for name in names] for work, seconds in samples])
    free = list(range(len(names)))
    while True:
        costs = np.linalg.lstsq(table[:, free], np.ones(len(table)), rcond=None)[0]
        if (costs >= 0).all():
            return dict(zip([names[i] for i in free], costs.tolist(), strict=True)), names
        free.pop(int(costs.argmin()))


def main(suites):
    found = dict(measured(suites))
    samples = [sample for row in found.values() for sample in row.values()]
    costs, names = fitted(samples)
    algorithm.COSTS = {name: round(costs.get(name, 0.0), 4) for name in names}
    print(json.dumps(algorithm.COSTS, indent=4))
    taken = best = 0.0
    for row, choices in found.items():
        direct = choices["None"]
        others = [choice for key, choice in choices.items() if key != "None"]
        predicted = min(others, key=lambda choice: algorithm.seconds(choice[0]), default=direct)
        gains = algorithm.seconds(predicted[0]) * algorithm.LEAST_GAIN < algorithm.seconds(direct[0])
        chosen = predicted[1] if gains else direct[1]
        least = min(seconds for _, seconds in choices.values())
        taken, best = taken + chosen, best + least
        if chosen > 1.03 * least:
            print(f"{row}: {chosen / least:.2f} of the best; direct {direct[1] * 1e3:.2f} ms")
    print(f"all rows: {taken / best:.3f} of the best choices' time")


if __name__ == "__main__":
    main(sys.argv[1].split(",") if len(sys.argv) > 1 else NAMES)
