"""What a data gradient costs where the filter is large beside y: as the sum itself, exchanged, by columns.

For each pair of channels the sum itself asks at each position of x for all taps, x * kernel products; with the filter
and y in each other's place they are x * y; columns are y * kernel, and each is added. Cycles of one thread, by a model.
"""

from math import inf, prod

#: Of the vectors that the costs were fitted with. With narrower ones all three ways take longer, by nearly as much: on
#: x86_64_v2 and v3 their order is that of these.
_FITTED_BYTES = 64


def lanes_of(dtype):
    """Sums of a vector."""
    return _FITTED_BYTES // dtype.compute_itemsize


def of_itself(problem, tuning, lanes):
    """Cycles of the sum itself; stride phases have a part of the taps each."""
    phases = _product(problem.x, problem.kernel) / prod(problem.stride)
    fill = max(_filled(problem.x_channels, lanes), tuning.row_fill * _filled(_row(problem, problem.stride), lanes))
    products = tuning.sum_cycles * _pairs(problem) * phases / (lanes * fill)
    filter = problem.groups * problem.x_channels * problem.y_channels * prod(problem.kernel)
    walks = tuning.walk_cycles * prod(map(min, problem.stride, problem.kernel))
    return products + tuning.filter_cycles * filter + _elements(problem) + walks


def exchanged(problem, tuning, lanes):
    """The same with y and the filter in each other's place: images for channels of x, dilation for stride.

    Infinite where that is no gain: where the filter is not larger, or x has few positions.
    """
    if prod(problem.kernel) <= prod(problem.y) or prod(problem.x) <= tuning.most_parts:
        return inf  # of few positions, the sum itself leaves out the taps beyond y
    phases = _product(problem.x, problem.y) / prod(problem.dilation)
    row = tuning.exchanged_row_fill * _filled(_row(problem, problem.dilation), lanes)
    products = tuning.exchanged_cycles * _pairs(problem) * phases / (lanes * max(_filled(problem.batch, lanes), row))
    walks = tuning.walk_cycles * prod(map(min, problem.dilation, problem.y))
    return products + tuning.exchanged_element_cycles * _elements(problem) + walks


def by_columns(problem, tuning, lanes):
    """The same by columns: taps of a row are added together, or one by one where they are apart."""
    channel = _product(problem.y, problem.kernel)
    elements = problem.batch * problem.groups * problem.x_channels * channel
    runs = elements / (problem.kernel[2] if problem.dilation[2] == 1 else 1)
    size = _FITTED_BYTES // lanes * problem.groups * channel  # in bytes
    times = tuning.large_columns if size > tuning.column_bytes else 1
    added = tuning.column_cycles * times * elements + tuning.column_run_cycles * runs
    return problem.multiplications / lanes + added + tuning.column_call_cycles


def widened(problem, tuning):
    """What it takes to make float of all arrays, and x of float."""
    filter = problem.groups * problem.x_channels * problem.y_channels * prod(problem.kernel)
    y = problem.batch * problem.groups * problem.y_channels * prod(problem.y)
    return tuning.widening_cycles * (_elements(problem) + filter + y)


def _product(*triples):
    return float(prod(map(prod, triples)))


def _pairs(problem):
    return problem.batch * problem.groups * problem.x_channels * problem.y_channels


def _elements(problem):
    """Of x."""
    return problem.batch * problem.groups * problem.x_channels * prod(problem.x)


def _row(problem, steps):
    """Positions of a row of x that one walk visits."""
    return -(-problem.x[2] // steps[2])


def _filled(count, lanes):
    """The part of its vectors that so many fill."""
    return count / (-(-count // lanes) * lanes)
