"""How much memory a packed filter takes."""

from functools import lru_cache
from math import prod

from ...problem import DGRAD, WGRAD
from ..plan.shared import packed_outputs
from ..plan.sum_problem import case_of
from .choices import crosses_positions


@lru_cache(maxsize=4)
def most_shared(operation, problem, dtype, tile):
    """Bytes at most, in any layout, of a filter packed for all tasks; wgrad packs none."""
    if operation == WGRAD:
        return 0
    case = case_of(operation, problem, dtype, tile, operation == DGRAD)
    across = all(crosses_positions(case, adjacent) for adjacent in (False, True))
    outputs = case.outputs if across else packed_outputs(case.outputs, case.lanes, case.strip)
    return case.groups * case.channels * outputs * prod(problem.kernel) * case.itemsize
