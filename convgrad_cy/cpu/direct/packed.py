"""Memory of a packed filter."""

from functools import lru_cache
from math import prod

from ...problem import DGRAD, WGRAD
from ..plan.shared import packed_outputs
from ..plan.sum_problem import sum_problem_of
from .choices import crosses_positions


@lru_cache(maxsize=4)
def most_shared(operation, problem, dtype, tile):
    """Maximum bytes, over all layouts, of a filter that is packed for all tasks. wgrad packs no filter."""
    if operation == WGRAD:
        return 0
    sums = sum_problem_of(operation, problem, dtype, tile, operation == DGRAD)
    across = all(crosses_positions(sums, adjacent) for adjacent in (False, True))
    outputs = sums.outputs if across else packed_outputs(sums.outputs, sums.lanes, sums.strip)
    return sums.groups * sums.channels * outputs * prod(problem.kernel) * sums.itemsize
