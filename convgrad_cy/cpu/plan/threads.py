"""The number of threads of a call. It never affects the result's bits."""

from .scratch import array_bytes


def threads_of(problem, itemsize, machine):
    """The threads of a call; 1 if it has so few products and bytes that starting more threads costs more than it saves.

    ``itemsize``: bytes of an element of its arrays.
    """
    tuning = machine.tuning
    few = problem.multiplications < tuning.serial_products
    return 1 if few and sum(array_bytes(problem, itemsize)) < tuning.serial_bytes else machine.threads
