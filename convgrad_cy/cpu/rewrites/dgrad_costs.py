"""Costs of three ways to compute a data gradient whose filter is larger than y: direct, exchanged, columns.

For each pair of channels, direct computes x * kernel products: all taps at each position of x. With the filter and y
exchanged, there are x * y products. Columns have y * kernel products, and each product is added to x. The model returns
the cycles of one thread.
"""

from math import inf, prod

#: Bytes of the vectors for which the costs were fitted. With narrower vectors (x86_64_v2 and v3) all three ways take
#: longer by about the same factor, so their order is the same.
_FITTED_BYTES = 64


def lanes_of(dtype):
    """Number of sums in a vector."""
    return _FITTED_BYTES // dtype.compute_itemsize


def direct(problem, tuning, lanes):
    """Cycles of the direct sum. Each stride phase has only a part of the taps."""
    phases = _product(problem.x, problem.kernel) / prod(problem.stride)
    fill = max(_filled(problem.x_channels, lanes), tuning.row_fill * _filled(_row(problem, problem.stride), lanes))
    products = tuning.sum_cycles * _pairs(problem) * phases / (lanes * fill)
    filter = problem.groups * problem.x_channels * problem.y_channels * prod(problem.kernel)
    walks = tuning.walk_cycles * prod(map(min, problem.stride, problem.kernel))
    return products + tuning.filter_cycles * filter + _elements(problem) + walks


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
