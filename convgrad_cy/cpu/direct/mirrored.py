"""Mirrored wgrad: x and y are exchanged, so y is the source and x is the target."""

from math import prod

from ..machine.register_tile import tile_cycles


def is_better_mirrored(problem, tile, itemsize):
    """Whether wgrad is faster with x and y exchanged: the columns of a tile are then channels of x, not of y.

    It is faster if the channels of y leave most lanes of the vectors empty. A mirrored sum runs over all positions of
    x, and near the edges of x it multiplies by the padding of y. So x must not be much larger than y.
    """
    channels, outputs, tuning = problem.x_channels, problem.y_channels, tile.tuning
    if problem.groups > 1 or problem.stride != (1, 1, 1):
        return False
    if problem.is_pointwise():
        as_it_is, mirrored = (
            tile_cycles(rows, columns, tile, itemsize) for rows, columns in ((channels, outputs), (outputs, channels))
        )
        return mirrored < tuning.mirrored_cycles * as_it_is
    # The number limits the channels of y. It is also the minimum ratio of the channels of x and y.
    few = outputs <= tuning.mirrored_outputs and tuning.mirrored_outputs * outputs <= channels
    return few and prod(problem.x) <= tuning.mirrored_padding * prod(problem.y)
