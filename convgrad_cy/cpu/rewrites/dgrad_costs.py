"""Costs of three ways to compute a data gradient whose filter is larger than y: direct, exchanged, columns.

For each pair of channels, direct computes x * kernel products: all taps at each position of x. With the filter and y
exchanged, there are x * y products. Columns have y * kernel products, and each product is added to x. The model returns
the cycles of one thread.
"""

from math import inf, prod

from ..direct.choices import crosses_positions, split_walks
from ..plan.sum_problem import sum_problem_of

#: Bytes of the vectors for which the costs were fitted. With narrower vectors (x86_64_v2 and v3) all three ways take
#: longer by about the same factor, so their order is the same.
_FITTED_BYTES = 64


def lanes_of(dtype):
    """Number of sums in a vector."""
    return _FITTED_BYTES // dtype.compute_itemsize


def direct(task, lanes):
    """Cycles of the direct sum."""
    problem, tuning, parts = task.problem, task.machine.tuning, _parts_of_direct(task)
    channels = _filled(problem.x_channels, lanes)
    vectors = sum(products / max(channels, tuning.row_fill * _filled(row, lanes)) for _, products, row in parts) / lanes
    filter = problem.groups * problem.x_channels * problem.y_channels * prod(problem.kernel)
    walks = tuning.walk_cycles * sum(count for count, _, _ in parts)
    return tuning.sum_cycles * _pairs(problem) * vectors + tuning.filter_cycles * filter + _elements(problem) + walks


def exchanged(problem, tuning, lanes):
    """Cycles with y and the filter exchanged: images replace channels of x, and dilation replaces stride.

    They are infinite where the exchange cannot gain: if the filter is not larger than y, or x has few positions.
    """
    if prod(problem.kernel) <= prod(problem.y) or prod(problem.x) <= tuning.most_parts:
        return inf  # with few positions, the direct sum skips the taps outside y
    phases = _product(problem.x, problem.y) / prod(problem.dilation)
    row = tuning.exchanged_row_fill * _filled(_row(problem, problem.dilation), lanes)
    products = tuning.exchanged_cycles * _pairs(problem) * phases / (lanes * max(_filled(problem.batch, lanes), row))
    walks = tuning.walk_cycles * prod(map(min, problem.dilation, problem.y))
    return products + tuning.exchanged_element_cycles * _elements(problem) + walks


def by_columns(problem, tuning, lanes):
    """Cycles with columns. The taps of a row are added together, or one by one if they are dilated."""
    channel = _product(problem.y, problem.kernel)
    elements = problem.batch * problem.groups * problem.x_channels * channel
    runs = elements / (problem.kernel[2] if problem.dilation[2] == 1 else 1)
    size = _FITTED_BYTES // lanes * problem.groups * channel  # in bytes
    times = tuning.large_columns if size > tuning.column_bytes else 1
    added = tuning.column_cycles * times * elements + tuning.column_run_cycles * runs
    return problem.multiplications / lanes + added + tuning.column_call_cycles


def widening(problem, tuning):
    """Cycles to convert all arrays to float, and x back."""
    filter = problem.groups * problem.x_channels * problem.y_channels * prod(problem.kernel)
    y = problem.batch * problem.groups * problem.y_channels * prod(problem.y)
    return tuning.widening_cycles * (_elements(problem) + filter + y)


def _parts_of_direct(task):
    """(number of walks, products for each pair of channels, positions of a row) of each kind of walk of the direct sum.

    Each stride phase has only a part of the taps. A walk that is split at padding has still fewer, in shorter rows.
    """
    problem = task.problem
    if problem.count_backward_phases() <= task.machine.tuning.most_parts:
        sums = sum_problem_of(task.operation, problem, task.dtype, task.machine.tile, True)
        parts = sums if crosses_positions(sums, positions_adjacent=False) else split_walks(sums)[0]
        if len(parts.walks) > len(sums.walks):
            return [
                (count, count * float(prod(axis.positions * axis.taps for axis in walk)), walk[2].positions)
                for count, walk in zip(parts.counts, parts.walks, strict=True)
            ]
    products = _product(problem.x, problem.kernel) / prod(problem.stride)
    return [(prod(map(min, problem.stride, problem.kernel)), products, _row(problem, problem.stride))]


def _product(*triples):
    return float(prod(map(prod, triples)))


def _pairs(problem):
    return problem.batch * problem.groups * problem.x_channels * problem.y_channels


def _elements(problem):
    """Elements of x."""
    return problem.batch * problem.groups * problem.x_channels * prod(problem.x)


def _row(problem, steps):
    """Positions of a row of x that one walk visits."""
    return -(-problem.x[2] // steps[2])


def _filled(count, lanes):
    """The share of vector lanes that ``count`` elements fill."""
    return count / (-(-count // lanes) * lanes)
