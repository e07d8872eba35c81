"""Run the work of a part on the addresses of its three arrays, where a caller has no arrays of NumPy."""

from .._repeat import Work, array_at


def by_address(work, views):
    """A function ``(first, second, result)`` that runs a work on the addresses of its arrays' first elements.

    ``views`` are arrays like the two inputs and the result, for which the work was prepared.
    """
    if type(work) is Work:
        return work.run
    layouts = [(view.shape, view.strides, view.dtype) for view in views]

    def run(*addresses):
        work.run(*(array_at(address, *layout) for address, layout in zip(addresses, layouts, strict=True)))

    return run
