"""The forms of a plan of fprop or dgrad, in order of preference: the first one without a refusal is taken.

A form decides whether the columns of a tile are positions or outputs, whether each task packs its part of the filter,
and which walks a task computes. The order of sums is already decided, so the form does not affect the result's bits.
"""

from typing import Any, NamedTuple

from ...memo.once import once
from ...problem import balanced_size
from .choices import (
    crosses_positions,
    joins_phases,
    keeps_rows,
    packs_in_tasks,
    packs_phases,
    split_walks,
    stores_rows,
    takes_halves,
)
from .order import box_positions


class FormInput:
    """The input of a form: a ``SumProblem``, its ``Placement`` and its ``Order``, and rules that several forms use."""

    def __init__(self, sums, placement, order):
        self.sums, self.placement, self.order = sums, placement, order

    @once
    def split(self):
        """(sums, parts of each walk), as ``split_walks`` gives them."""
        return split_walks(self.sums)

    @once
    def is_split(self):
        """Whether some walk has several parts."""
        return len(self.split[0].walks) > len(self.sums.walks)

    @once
    def packs_in_tasks(self):
        return not self.is_split and packs_in_tasks(self.split[0])

    @once
    def joins_phases(self):
        return not self.is_split and joins_phases(self.split[0])


class Sizes(NamedTuple):
    """The sizes that a form chooses."""

    sums: Any  # the ``SumProblem`` with the walks of the tasks
    parts: list  # for each walk of the input, the walks into which it is split
    block: int  # outputs of a task
    max_positions: int  # of a box
    across: bool = False  # the columns of a tile are positions
    packs: bool = False  # each task packs its part of the filter
    phases: int = 1  # walks that a task computes together


class Form(NamedTuple):
    """A form. ``refusal(given)``: None, or the reason to decline. ``sizes(given)``: its ``Sizes``."""

    name: str
    refusal: Any
    sizes: Any


def _block(sums, multiple, parts=1):
    return balanced_size(sums.outputs, sums.tuning.most_outputs // parts, multiple)


def _refusal_of_few_outputs(given):
    """None if the positions of a row fill the vectors of a tile better than the output channels; else the reason."""
    sums, placement = given.sums, given.placement
    if sums.multiplies_pairs:  # stage 1 gives up pairs only where tiles across positions are faster
        return "bfloat16 is multiplied in pairs of channels" if given.order.pairs else None
    if not placement.positions_adjacent and takes_halves(sums, placement):
        return "the output channels fill half of a vector"
    crosses = crosses_positions(sums, placement.positions_adjacent)
    return None if crosses else "the output channels fill the vectors better"


def _refusal_of_rows(given):
    reason = _refusal_of_few_outputs(given)
    # With at most half a vector of outputs, tiles across channels took 1.6 to 1.9 times as long.
    fills = 2 * given.sums.outputs > given.sums.lanes and not given.placement.positions_adjacent
    if reason is None and fills and _refusal_of_phases(given) is None:
        return "tasks with all stride phases store whole cache lines of several groups"
    if reason is None or given.order.pairs or given.packs_in_tasks:
        return reason
    keeps = keeps_rows(given.split[0], given.placement, given.joins_phases)
    return None if keeps else f"{reason}, and rows cannot be stored as they lie"


def _rows(given):
    if _refusal_of_few_outputs(given) is None:  # then the rows of a tile are output channels, few of them
        sums, parts, multiple = given.sums, [[walk] for walk in given.sums.walks], given.sums.tile.tile_rows
        joins = joins_phases(sums)
    else:
        (sums, parts), multiple, joins = given.split, given.sums.strip, given.joins_phases
    block, phases = _block(sums, multiple), sums.count if joins else 1
    return Sizes(sums, parts, block, box_positions(sums, block, phases), across=True, phases=phases)


def _refusal_of_packed(given):
    if not given.packs_in_tasks:
        return "the filter is small, sums are short, the positions are many, or walks are split at padding"
    return "the taps of the stride phases lie side by side" if packs_phases(given.split[0], given.placement) else None


def _packed(given):
    sums, parts = given.split
    tuning, max_positions = sums.tuning, sums.tuning.larger_positions
    block = balanced_size(sums.outputs, tuning.larger_sums_bytes // (max_positions * sums.itemsize), sums.strip)
    while block > sums.strip and 2 * sums.groups * sums.count * -(-sums.outputs // block) < tuning.wanted_tasks:
        block = balanced_size(sums.outputs, block // 2, sums.strip)
    return Sizes(sums, parts, block, max_positions, packs=True)


def _refusal_of_phases(given):
    if not given.joins_phases:
        return "there are no stride phases that make whole rows"
    return None if stores_rows(given.split[0], given.placement) else "whole rows would not be stored faster"


def _phases(given):
    sums, parts = given.split
    block = _block(sums, sums.strip, sums.count)
    return Sizes(sums, parts, block, box_positions(sums, block, sums.count), phases=sums.count)


def _plain(given):
    sums, parts = given.split
    block = _block(sums, sums.strip)
    return Sizes(sums, parts, block, box_positions(sums, block, 1))


#: The last form never declines.
PREFERENCE = (
    Form("tiles across the positions of a row", _refusal_of_rows, _rows),
    Form("tasks pack their part of the filter", _refusal_of_packed, _packed),
    Form("tasks have all stride phases", _refusal_of_phases, _phases),
    Form("tiles across output channels", lambda given: None, _plain),
)


def chosen(given):
    """The forms that decline, as pairs of name and reason, and the form that is taken."""
    refusals = []
    for form in PREFERENCE:
        reason = form.refusal(given)
        if reason is None:
            return refusals, form
        refusals.append((form.name, reason))
    raise ValueError("no form suits this case")
