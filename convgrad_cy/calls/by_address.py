"""Run the work of a part on the addresses of its three arrays, for callers without NumPy arrays."""

from .._repeat import Work, array_at


def by_address(work, views):
    """Return a function ``(first, second, result)`` of three addresses that runs the work on the arrays there.

    Each address is of an array's first element. ``views`` are the arrays for which the work was prepared: the two
    inputs and the result.
    """
    if type(work) is Work:
        return work.run
    layouts = [(view.shape, view.strides, view.dtype) for view in views]

    def run(*addresses):
        work.run(*(array_at(address, *layout) for address, layout in zip(addresses, layouts, strict=True)))

    return run
