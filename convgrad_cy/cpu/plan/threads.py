"""The number of threads of a call. It never affects the result's bits."""

from .scratch import array_bytes


def threads_of(problem, itemsize, machine):
    """All threads of the machine, or 1 if the call has few products and few bytes.

    Then starting more threads would cost more than it saves. ``itemsize``: bytes of an element of the call's arrays.
    """
    tuning = machine.tuning
    few = problem.multiplications < tuning.serial_products
    return 1 if few and sum(array_bytes(problem, itemsize)) < tuning.serial_bytes else machine.threads
