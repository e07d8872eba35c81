"""A pipeline: the steps that compute a task, as data. Copies in, kernels, copies out.

A step has the attributes ``operands`` and ``allocates`` and two methods:

- ``jobs()``: the ``Job`` objects (kernels with their plans) that the step contains. A copy contains none.
- ``ready(indices)``: an object with ``run_on(addresses, before)``, which runs the step.

``addresses`` is a tuple: the addresses of the call's two inputs (indices 0 and 1), of its result (2) and of the buffers
(3 and up). ``indices`` maps each ``Buffer`` to its index in this tuple.

``before`` is a callback without arguments, or None. A call of the pipeline calls it once: after the last allocation and
before the first write to the result. So a MemoryError leaves the result unchanged. The last step that allocates (the
first step, if none allocates) receives the callback, and calls it after its own allocations. Therefore no earlier step
may write to the result. A buffer is allocated just before the first step that uses it. But a buffer
whose first use comes after the step that receives the callback is allocated just before the step that receives it.
"""

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from ..._repeat import address_of
from ...arrays import NUMPY
from .job import Job
from .operand import Buffer
from .reasons import Reason
from .scratch import SCRATCH


class Pipeline(NamedTuple):
    """Steps in their order. ``notes``: names and values that rewrites of the task add to ``explain``."""

    steps: tuple
    notes: Mapping = MappingProxyType({})

    def noted(self, **notes):
        """This pipeline with further notes. They come first, and replace notes of the same name."""
        notes = {name.replace("_", " "): value for name, value in notes.items()}
        return self._replace(notes=notes | {name: self.notes[name] for name in self.notes if name not in notes})

    def between(self, first, last=(), **notes):
        """This pipeline with the steps ``first`` at its begin and the steps ``last`` at its end, and with the notes."""
        return self._replace(steps=(*first, *self.steps, *last)).noted(**notes)

    def jobs(self):
        """The jobs of all steps."""
        return list(chain.from_iterable(step.jobs() for step in self.steps))

    def details(self, names):
        """Names and values for ``explain``: the notes, and the details of the job with the most products.

        ``names``: the index of an array of the call -> its name, for the list of copied arrays.
        """
        main = max(self.jobs(), key=lambda job: job.task.problem.multiplications)
        own, notes = main.details(), self.notes
        others = [operand.memory for step in self.steps if not step.jobs() for operand in step.operands]
        copied = [name for memory, name in names.items() if memory in others]
        if copied and "copied" not in notes:
            notes = notes | {"copied": ", ".join(copied)}
        first = {name: value for name, value in notes.items() if name not in own}
        found = first | own | notes | {SCRATCH: self._scratch_bytes()}
        return [(name, str(value) if isinstance(value, Reason) else value) for name, value in found.items()]

    def _scratch_bytes(self):
        """Maximum bytes that are allocated at the same time, without the windows and sums of each thread."""
        maximum = held = 0
        for step, allocated, freed in _with_buffers(self.steps):
            held += sum(buffer.template.nbytes for buffer in allocated)
            own = [job.details()[SCRATCH] for job in step.jobs()]
            maximum = max(maximum, held + max(own, default=0))
            held -= sum(buffer.template.nbytes for buffer in freed)
        return maximum

    def ready(self):
        """The work of the pipeline: a ``Work``, or a ``Sequence``, which has the same ``run``."""
        steps = list(_with_buffers(self.steps))
        if len(steps) == 1 and isinstance(self.steps[0], Job):  # one kernel on the call's arrays needs no buffers
            return self.steps[0].ready({})
        buffers = [buffer for _, allocated, _ in steps for buffer in allocated]
        indices = {buffer: index for index, buffer in enumerate(buffers, 3)}
        ready = [
            (
                step.ready(indices),
                [(indices[buffer], buffer.template.shape, buffer.template.dtype) for buffer in allocated],
                [indices[buffer] for buffer in freed],
            )
            for step, allocated, freed in steps
        ]
        return Sequence(ready, len(buffers), last_that_allocates(self.steps))


def last_that_allocates(steps):
    """The index of the last step that allocates memory; 0 if none does."""
    return max((index for index, step in enumerate(steps) if step.allocates), default=0)


def joined(pipelines):
    """One pipeline that runs several, one after the other. It has the notes of the first."""
    return Pipeline(tuple(chain.from_iterable(each.steps for each in pipelines)), pipelines[0].notes)


def _with_buffers(steps):
    """Triples: a step, the buffers that are allocated just before it, and the buffers that are freed just after it."""
    latest = last_that_allocates(steps)
    uses = {}  # buffer -> the indices of the first and the last step that use it
    for index, step in enumerate(steps):
        for operand in step.operands:
            if isinstance(operand.memory, Buffer):
                first, _ = uses.get(operand.memory, (index, None))
                uses[operand.memory] = first, index
    allocated, freed = [[] for _ in steps], [[] for _ in steps]
    for buffer, (first, last) in uses.items():
        allocated[min(first, latest)].append(buffer)
        freed[last].append(buffer)
    return zip(steps, allocated, freed, strict=True)


class Loop(NamedTuple):
    """A step that runs the same steps in several rounds. In each round, the operands begin at other addresses.

    ``distances``: for each round, pairs (memory, bytes). In this round, the bytes are added to the memory's address.
    A round may write to the result only if it is the last one, because only the last round receives the callback
    ``before``. ``_columns`` in rewrites/columns.py lets the rounds write to a buffer, which a later step copies.
    """

    steps: tuple
    distances: tuple

    allocates = True

    @property
    def operands(self):
        return [operand for step in self.steps for operand in step.operands]

    def jobs(self):
        return list(chain.from_iterable(step.jobs() for step in self.steps))

    def ready(self, indices):
        steps = [step.ready(indices) for step in self.steps]
        distances = [[(indices.get(memory, memory), size) for memory, size in each] for each in self.distances]
        return ReadyLoop(steps, last_that_allocates(self.steps), distances)


class ReadyLoop(NamedTuple):
    """A ``Loop``, ready to run."""

    steps: list
    last: int  # the index of the last step that allocates
    distances: list  # for each round, pairs (index in the addresses, bytes)

    def run_on(self, addresses, before=None):
        last_round = len(self.distances) - 1
        for round_index, distances in enumerate(self.distances):
            moved = list(addresses)
            for index, size in distances:
                moved[index] += size
            for index, step in enumerate(self.steps):
                calls_before = round_index == last_round and index == self.last
                step.run_on(tuple(moved), before if calls_before else None)


class Sequence:
    """The work of several steps, for arrays of certain shapes and strides. It has the interface of ``_repeat.Work``.

    ``steps``: triples of a ready step, the buffers to allocate before it as (index, shape, dtype), and the indices of
    the buffers to free after it. ``buffer_count``: number of all buffers. ``last``: the index of the step that receives
    ``before``.
    """

    __slots__ = ("buffer_count", "last", "steps")

    def __init__(self, steps, buffer_count, last):
        self.steps, self.buffer_count, self.last = steps, buffer_count, last

    def run(self, first, second, result, before=None):
        """Write the result. Each argument is an array or an address.

        ``before`` is called after all memory is allocated and before anything is written to the result.
        """
        addresses, buffers = [*map(address_of, (first, second, result)), *[0] * self.buffer_count], {}
        for number, (step, allocated, freed) in enumerate(self.steps):
            for index, shape, dtype in allocated:
                buffers[index] = NUMPY.empty(shape, dtype)
                addresses[index] = address_of(buffers[index])
            step.run_on(tuple(addresses), before if number == self.last else None)
            for index in freed:
                del buffers[index]
