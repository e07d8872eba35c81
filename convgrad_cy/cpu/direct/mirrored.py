"""wgrad with x and y in each other's place."""

from math import prod

from ..tile import tile_cycles

#: Channels of y that leave most of a vector empty.
FEW_COLUMNS = 4
#: Cycles of the tiles of a pointwise wgrad so, as a part of those otherwise, below which it is done.
MIRRORED_PART = 0.9


def is_better_mirrored(problem, tile, itemsize):
    """Whether wgrad is faster with x and y in each other's place: columns of a tile are then channels of x, not of y.

    It is where those of y leave much of the vectors empty. With several taps each x is seen with padding of y.
    """
    channels, outputs = problem.x_channels, problem.y_channels
    if problem.groups > 1 or problem.stride != (1, 1, 1):
        return False
    if problem.is_pointwise():
        as_it_is, mirrored = (
            tile_cycles(rows, columns, tile, itemsize) for rows, columns in ((channels, outputs), (outputs, channels))
        )
        return mirrored < MIRRORED_PART * as_it_is
    few = outputs <= FEW_COLUMNS and FEW_COLUMNS * outputs <= channels
    return few and 2 * prod(problem.x) <= 3 * prod(problem.y)
