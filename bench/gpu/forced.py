"""Kernels that the planner would not choose: one family takes all possible tasks, with a given choice.

The choice of a matrix product is its tile, its splits and, on tensor cores, its joins; the choice of a depthwise
convolution is the shape of a thread; ``gather`` chooses nothing. The family itself makes the plans, so everything that
follows from the choice is as usual.
"""

from contextlib import ExitStack, contextmanager
from itertools import cycle
from math import inf
from typing import Any, NamedTuple
from unittest.mock import patch

from convgrad_cy import calls, gpu
from convgrad_cy.gpu import depthwise, families, joins, mma, mma_engine, simt, simt_tiles, thread_shape, tiles
from convgrad_cy.problem import WGRAD

FAMILIES = dict(zip(families.NAMES, families.PREFERENCE, strict=True))
#: Numbers of parts of a sum: one, whose result is final, and several, which ``reduce.cu`` adds.
_SPLITS = (1, 3)


class Product(NamedTuple):
    """A tile, the number of splits of its sums (fewer if there are fewer stages), and the joined groups or phases."""

    tile: Any  # from tiles.py or simt_tiles.py
    splits: int
    join: joins.Join = joins.ALONE

    def __str__(self):
        grouped = " by warpgroups" if getattr(self.tile, "warpgroups", 0) else ""
        grouped += " and the copy engine" if getattr(self.tile, "engine", False) else ""
        join = "" if self.join == joins.ALONE else f" joined {self.join.groups} {self.join.phases}".replace(",", "")
        return f"{self.tile.rows}x{self.tile.columns}{grouped} splits {self.splits}{join}"

    def macros(self):
        """The choice as macros of a kernel."""
        found = {"TILE_ROWS": str(self.tile.rows), "TILE_COLUMNS": str(self.tile.columns)}
        grouped = getattr(self.tile, "warpgroups", None)
        if grouped is None:
            return found
        return {**found, "WARPGROUPS": str(grouped), "ENGINE": str(int(self.tile.engine))}

    def parts(self, steps):
        """The number of splits, and the stages of each."""
        each = -(-steps // self.splits)
        return -(-steps // each), each


class Thread(NamedTuple):
    """The outputs that a thread of a depthwise convolution computes."""

    channels: int
    positions: int
    taps: int
    spaced: bool

    @classmethod
    def of(cls, shape):
        return cls(*(getattr(shape, name) for name in cls._fields))

    def __str__(self):
        return " ".join(f"{name} {int(value)}" for name, value in self._asdict().items())

    def macros(self):
        return {name.upper(): str(int(value)) for name, value in self._asdict().items()}


def can(family, task):
    """Whether a family can compute a task. Some families also say whether it gains."""
    module = FAMILIES[family]
    return not task.is_empty and getattr(module, "can", module.suits)(task)


def _is_possible(product, task, join):
    if not product.tile.engine:
        return True
    with _of_mma(product):
        return mma.engine_brings(task, join)


def choices(family, task):
    """All choices of a family. If parts of a task can be joined, each way to join has tiles in turn."""
    if family == "mma":
        kind = mma.kind_of(task)
        compiled = tiles.tiles(kind, task.device, task.operation == WGRAD)
        if task.operation != WGRAD:
            compiled += tiles.by_engine(kind, task.device)
        every = [Product(tile, n) for tile in compiled for n in _SPLITS]
        alone, *ways = joins.joins(task)
        if not ways:
            return [one for one in every if _is_possible(one, task, alone)]
        turns = cycle(every[::-1])
        return [next(one for one in turns if _is_possible(one, task, join))._replace(join=join) for join in ways]
    if family == "simt":
        return [Product(tile, n) for tile in simt_tiles.TILES[task.dtype.compute_itemsize] for n in _SPLITS]
    if family == "depthwise":
        seen = set()
        with patch.object(thread_shape.Shape, "cost", lambda shape, *_: seen.add(Thread.of(shape)) or 0):
            depthwise.launches(task)
        return sorted(seen)
    return [None]


def _steps(kind, tile, depths):
    return max(1, *(-(-depth // kind.depth(tile)) for depth in depths))


def _of_mma(choice):
    def best_tile(kind, device, groups, products, compiled):
        if choice.tile not in compiled:
            return compiled[0], 1, 2**31, inf  # not this one
        return choice.tile, *choice.parts(_steps(kind, choice.tile, [depth for *_, depth in products])), 0.0

    def best_split(kind, device, groups, rows, columns, depth, compiled, by_engine):
        return choice.tile, choice.parts(_steps(kind, choice.tile, [depth]))[1], 0.0

    changes = ExitStack()
    changes.enter_context(patch.multiple(mma, best_tile=best_tile, best_split=best_split))
    changes.enter_context(patch.object(mma, "joins", lambda task: [choice.join]))
    changes.enter_context(patch.object(mma_engine, "best_tile", best_tile))
    return changes


def _of_simt(choice):
    def taken(extents, *_):
        steps = -(-extents.depth // choice.tile.depth)
        return choice.tile, choice.parts(steps)[0] if extents.walks == 1 else 1

    return patch.object(simt, "choice", taken)


def _of_depthwise(choice):
    return patch.object(thread_shape.Shape, "cost", lambda shape, *_: Thread.of(shape) != choice)


_CHANGES = {"mma": _of_mma, "simt": _of_simt, "depthwise": _of_depthwise}


@contextmanager
def taking(family, choice=None):
    """Let a family take every task that it can, with one of its ``choices`` if one is given."""
    planner = families.family

    def first(task, *others):
        return FAMILIES[family] if can(family, task) else planner(task, *others)

    with ExitStack() as changes:
        changes.enter_context(patch.object(families, "family", first))
        if choice is not None:
            changes.enter_context(_CHANGES[family](choice))
        calls.forget()
        changes.callback(calls.forget)
        yield


class _Planned(Exception):
    """Carries a task out of a call."""


def task_of(call):
    """The task of a call on arrays of CuPy. The call does not run."""

    def plan(task):
        raise _Planned(task)

    calls.forget()
    with patch.object(gpu, "plan", plan):
        try:
            call()
        except _Planned as planned:
            return planned.args[0]
    raise ValueError("the call must reach the planner of the GPU, was carried out without it")
