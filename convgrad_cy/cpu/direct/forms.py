"""The forms of a plan of fprop or dgrad, in the order in which they are tried: the first that suits is taken.

A form says which operand the columns of a tile are, who packs the filter, and what of the walks a task has. None
reaches a bit of the result: the order of its sums is given.
"""

from typing import Any, NamedTuple

from ...problem import even
from ..once import once
from .choices import (
    crosses_positions,
    cut_ends,
    cut_walks,
    joins_phases,
    keeps_rows,
    packs_in_tasks,
    packs_phases,
    reads_rows,
    stores_rows,
    takes_halves,
)
from .order import box_positions


class Given:
    """What a form is asked about: a ``Case``, its ``Setting`` and its ``Order``."""

    def __init__(self, case, setting, order):
        self.case, self.setting, self.order = case, setting, order

    @once
    def cut(self):
        """The case with its walks cut, where padding would take much of the time; and for each walk its parts."""
        return cut_walks(self.case)

    @once
    def is_cut(self):
        """Whether a walk has several parts."""
        return len(self.cut[0].walks) > len(self.case.walks)

    @once
    def packs_in_tasks(self):
        return not self.is_cut and packs_in_tasks(self.cut[0])

    @once
    def joins_phases(self):
        return not self.is_cut and joins_phases(self.cut[0])


class Sizes(NamedTuple):
    """What a form makes of a case.

    ``case``: with the walks that tasks have, ``parts`` of each of the given one. ``block``: outputs of a task.
    ``most``: positions of a box. ``across``: the columns of a tile are positions. ``packs``: each task packs its part
    of the filter. ``phases``: walks that a task computes together.
    """

    case: Any
    parts: list
    block: int
    most: int
    across: bool = False
    packs: bool = False
    phases: int = 1


class Form(NamedTuple):
    """``suits(given)`` is None or the reason why the form is not taken, ``sizes(given)`` the ``Sizes`` if it is."""

    name: str
    suits: Any
    sizes: Any


def _block(case, multiple, parts=1):
    return even(case.outputs, case.tuning.most_outputs // parts, multiple)


def _suits_rows(given):
    case, setting = given.case, given.setting
    if case.multiplies_pairs:
        return "bfloat16 is multiplied in pairs of channels" if given.order.pairs else None
    if not setting.positions_adjacent and takes_halves(case, setting):
        return "the output channels fill half of a vector"
    crosses = crosses_positions(case, setting.positions_adjacent)
    return None if crosses else "the output channels fill the vectors better"


def _rows(given):
    case = given.case
    block, phases = _block(case, case.tile.tile_rows), case.count if joins_phases(case) else 1
    parts = [[walk] for walk in case.walks]
    return Sizes(case, parts, block, box_positions(case, block, phases), across=True, phases=phases)


def _suits_packed(given):
    if not given.packs_in_tasks:
        return "the filter is small, the positions are many, or walks are cut at padding"
    return "the taps of the stride phases lie side by side" if packs_phases(given.cut[0], given.setting) else None


def _packed(given):
    case, parts = given.cut
    tuning, most = case.tuning, case.tuning.larger_positions
    block = even(case.outputs, tuning.larger_sums_bytes // (most * case.itemsize), case.strip)
    while block > case.strip and 2 * case.groups * case.count * -(-case.outputs // block) < tuning.wanted_tasks:
        block = even(case.outputs, block // 2, case.strip)
    return Sizes(case, parts, block, most, packs=True)


def _suits_kept_rows(given):
    if given.order.pairs:
        return "bfloat16 is multiplied in pairs of channels"
    keeps = not given.packs_in_tasks and keeps_rows(given.cut[0], given.setting, given.joins_phases)
    return None if keeps else "sums are long, or rows cannot be stored as they lie"


def _kept_rows(given):
    case, parts = given.cut
    block, phases = _block(case, case.strip), case.count if given.joins_phases else 1
    return Sizes(case, parts, block, box_positions(case, block, phases), across=True, phases=phases)


def _suits_phases(given):
    if not given.joins_phases:
        return "there are no stride phases that make whole rows"
    return None if stores_rows(given.cut[0], given.setting) else "whole rows would not be stored faster"


def _phases(given):
    case, parts = given.cut
    block = _block(case, case.strip, case.count)
    return Sizes(case, parts, block, box_positions(case, block, case.count), phases=case.count)


def _suits_in_place(given):
    if given.is_cut:
        return "the walks are cut at padding"
    return None if reads_rows(given.cut[0], given.setting) else "the source is read often, or not channels last"


def _in_place(given):
    sizes = _plain(given)
    case, parts = cut_ends(given.cut[0])
    return sizes._replace(case=case, parts=parts)


def _plain(given):
    case, parts = given.cut
    block = _block(case, case.strip)
    return Sizes(case, parts, block, box_positions(case, block, 1))


#: The last suits whatever there is.
PREFERENCE = (
    Form("tiles across the positions of a row", _suits_rows, _rows),
    Form("tasks pack their part of the filter", _suits_packed, _packed),
    Form("tiles across the positions of rows stored as they lie", _suits_kept_rows, _kept_rows),
    Form("tasks have all stride phases", _suits_phases, _phases),
    Form("the source read in place, but for the ends of rows", _suits_in_place, _in_place),
    Form("tiles across output channels", lambda given: None, _plain),
)


def chosen(given):
    """The forms that decline, each by its name and its reason; and the one that is taken."""
    declined = []
    for form in PREFERENCE:
        reason = form.suits(given)
        if reason is None:
            return declined, form
        declined.append((form.name, reason))
    raise ValueError("no form suits this case")
