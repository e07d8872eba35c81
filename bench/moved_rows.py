"""One row for each tuned number: another value of the number moves the plan of the row, on a fixed machine.

``python -m bench.tune --record FILE`` searches for the rows, first in the suites and then in odd layers. A test plans
them again.
"""

from typing import NamedTuple

from convgrad_cy.cpu.machine import Machine

from . import moves, odd_layers, routes, suites
from .table import Progress

_WIDE = Machine(6, 256, 64, False, 32 << 20, threads=2)
#: The machines of the plans. The first one has vectors of 64 bytes, which it does not split.
MACHINES = {
    "wide": _WIDE,
    "many": _WIDE._replace(threads=16),
    "one": _WIDE._replace(threads=1),
    "split": _WIDE._replace(multiplies_pairs=True, splits_vectors=True),
    "narrow": Machine(6, 64, 32, False, 32 << 20, threads=2),
}
DTYPES = ("float32", "bfloat16", "float64")
#: A number moves a row if one of these multiples moves its plan.
FACTORS = (*moves.FACTORS, 0.5, 2)


class Moved(NamedTuple):
    """A number, a multiple that moves a plan, and the place of the plan: a machine and a row.

    The row is given by its kernel, layout, type and layer, which is a line of suites.txt.
    """

    number: str
    factor: float
    machine: str
    kernel: str
    layout: str
    dtype: str
    line: str

    @classmethod
    def parse(cls, text):
        number, factor, *others = text.rstrip("\n").split(" ", 6)
        return cls(number, float(factor), *others)

    def __str__(self):
        return " ".join(map(str, self))

    def task(self):
        """The task of the row on the machine."""
        (layer,) = suites.parse(f"[moved]\n{self.line}")
        row = suites.Row(layer, layer.case(self.layout, self.dtype), self.kernel)
        return routes.task_of(row)._replace(machine=MACHINES[self.machine])

    def is_moved(self):
        """Whether the multiple changes the plan."""
        task = self.task()
        return moves.planned(task) != moves.planned(moves.with_number(task, self.number, self.factor))


def read(path):
    """The rows of a file: number -> ``Moved``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {moved.number: moved for moved in map(Moved.parse, lines)}


def odd_layers_of(count, seed):
    """The layers of the curves and random layers, which are searched after the suites."""
    return suites.parse("\n".join(odd_layers.lines(odd_layers.SETS, count, seed)))


def search(names, layers, dtype, machine):
    """The first ``Moved`` of each of ``names`` that moves a row on a machine."""
    found, left = {}, list(names)
    rows = suites.rows({layer.suite for layer in layers}, dtypes=[dtype], layers=layers)
    progress = Progress(len(rows))
    for done, row in enumerate(rows):
        if not left:
            break
        progress.show(done, f"{dtype} on {machine}: {len(left)} numbers without a row")
        plan = moves.Planned.of(routes.task_of(row)._replace(machine=MACHINES[machine]))
        for name in left:
            factor = next((factor for factor in FACTORS if plan.moved(name, factor) is not None), None)
            if factor is not None:
                where = machine, row.kernel, row.case.layout, dtype, row.layer.line
                found[name] = Moved(name, factor, *where)
        left = [name for name in left if name not in found]
    progress.clear()
    return found
