"""Plans of small groups, or the reason why they decline."""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ...memo.bounded import bounded
from ...problem import DGRAD, WGRAD
from ..direct.plan import PLANS_BYTES
from ..machine.caches import memory_ways, operand_bytes
from ..plan.reasons import Reason
from ..plan.steps import Blocks, Outline, WindowAxis, whole_rows
from ..plan.sum_problem import placement_of, sum_problem_of
from .boxes import cut_accumulation, cut_correlation, lanes_bytes
from .limits import reason_not_faster
from .spread import serve_as_they_are, spread_of

#: Size of the lru_cache. ``refusal`` and ``pipeline`` need the same outline.
_LATEST_CALLS = 4


class OutlineOrReason(NamedTuple):
    """An outline, or the reason why small groups decline a problem."""

    reason: Any
    outline: Outline | None = None


@lru_cache(maxsize=_LATEST_CALLS)
def outline_or_reason(operation, problem, dtype, positions_adjacent, machine):
    """The ``OutlineOrReason`` of an operation.

    ``positions_adjacent``: as in ``Placement``.
    """
    if problem.groups == 1:
        return OutlineOrReason("there is one group")
    backward = operation == DGRAD
    sums = sum_problem_of(operation, problem, dtype, machine.tile, backward)
    placement = placement_of(problem, dtype, positions_adjacent, machine, backward)
    spread = spread_of(sums)
    reason = reason_not_faster(sums, placement, spread)
    if reason is not None:
        return OutlineOrReason(reason)
    worth = 8 * sums.multiplications >= sums.tuning.serial_products
    threads = machine.threads if worth else placement.threads
    in_place = serve_as_they_are(sums, spread) and not positions_adjacent and dtype.itemsize == sums.itemsize
    near = sum(operand_bytes(problem, dtype.itemsize)) <= sums.tuning.spread_in_place_part * machine.cache_bytes
    in_place = in_place and (spread is None or near)
    cut = cut_accumulation if operation == WGRAD else cut_correlation
    cut = cut(sums, spread, positions_adjacent, in_place, threads)
    if cut is None:
        return OutlineOrReason(Reason("a copy would take more than {} bytes", sums.tuning.most_lane_bytes))
    nontemporal, prefetch, _ = memory_ways(problem, dtype, machine, backward)
    # Small groups have no window. They use only one field of ``WindowAxis``: ``positions``, the size of a box.
    windows = [[WindowAxis(extent, 0, False, 0, 0, 0) for extent in cut.extents]] * len(sums.walks)
    blocks = Blocks(
        threads, lanewise=True, positions_across=False, images=1, chunk=sums.channels, outputs=cut.outputs,
        slices=cut.slices, nontemporal=nontemporal, prefetch=prefetch, packs=False,
        pairs=spread is not None and spread.pairs, spreads=0 if spread is None else 2 if in_place else 1,
        heights=cut.heights, bands=cut.bands,
    )  # fmt: skip
    return OutlineOrReason(None, Outline(sums.all_walks, whole_rows([[walk] for walk in sums.walks], windows), blocks))


@lru_cache(maxsize=_LATEST_CALLS)
def most_shared(operation, problem, dtype, tile):
    """Maximum bytes, over all layouts, of a packed filter, or in wgrad of the sums of one slice."""
    channels, outputs = problem.channels(operation == DGRAD)
    if problem.groups == 1 or 2 * max(channels, outputs) * dtype.compute_itemsize > tile.vector_bytes:
        return 0
    sums = sum_problem_of(operation, problem, dtype, tile, operation == DGRAD)
    # A block fills at least half of each vector, so memory is at most twice as large.
    return 2 * lanes_bytes(sums, spread_of(sums), problem.groups * outputs, prod(problem.kernel))


@bounded(PLANS_BYTES)
def plan(*arguments):
    """The plan of the outline that ``outline_or_reason`` gives for the same arguments."""
    return outline_or_reason(*arguments).outline.plan()
