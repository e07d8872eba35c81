"""A pipeline: the steps that compute a task, as data. Copies in, kernels, copies out.

A step has ``operands``, ``allocates``, ``kernels()`` and ``ready(numbers)``. The last gives an object with
``run_on(memories, before)``: ``memories`` are the addresses of the call's two inputs, its result and the buffers.

No step before the last one that allocates may write the result. That step (the first one, if none allocates) receives
the ``before`` of a call. It calls it after its own allocations and before its first store.
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
    """Steps in their order; ``notes``: names and values that the rewrites of the task tell ``explain``."""

    steps: tuple
    notes: Mapping = MappingProxyType({})

    def noted(self, **notes):
        """This pipeline with further notes; they come first, and replace notes of the same name."""
        notes = {name.replace("_", " "): value for name, value in notes.items()}
        return self._replace(notes=notes | {name: self.notes[name] for name in self.notes if name not in notes})

    def around(self, before, after=(), **notes):
        """This pipeline between the steps ``before`` and ``after``."""
        return self._replace(steps=(*before, *self.steps, *after)).noted(**notes)

    def kernels(self):
        """The jobs among the steps."""
        return list(chain.from_iterable(step.kernels() for step in self.steps))

    def details(self, names):
        """Names and values for ``explain``: the kernel with the most products, and the notes.

        ``names``: the number of an array of the call -> its name, for the copied arrays.
        """
        main = max(self.kernels(), key=lambda kernel: kernel.task.problem.multiplications)
        own, notes = dict(main.describe(main)), self.notes
        others = [operand.memory for step in self.steps if not step.kernels() for operand in step.operands]
        copied = [name for memory, name in names.items() if memory in others]
        if copied and "copied" not in notes:
            notes = notes | {"copied": ", ".join(copied)}
        first = {name: value for name, value in notes.items() if name not in own}
        found = first | own | notes | {SCRATCH: self._scratch_bytes()}
        return [(name, str(value) if isinstance(value, Reason) else value) for name, value in found.items()]

    def _scratch_bytes(self):
        """Most bytes that are allocated at a time, without the window and the sums of each thread."""
        most = live = 0
        for step, makes, drops in _lives(self.steps):
            live += sum(buffer.elements.nbytes for buffer in makes)
            own = [dict(kernel.describe(kernel))[SCRATCH] for kernel in step.kernels()]
            most = max(most, live + max(own, default=0))
            live -= sum(buffer.elements.nbytes for buffer in drops)
        return most

    def ready(self):
        """The work of the pipeline: a ``Work``, or a ``Sequence``, which has the same ``run``."""
        lives = list(_lives(self.steps))
        if len(lives) == 1 and isinstance(self.steps[0], Job):  # one kernel on the call's arrays needs no buffers
            return self.steps[0].ready({})
        buffers = [buffer for _, makes, _ in lives for buffer in makes]
        numbers = {buffer: number for number, buffer in enumerate(buffers, 3)}
        steps = [
            (
                step.ready(numbers),
                [(numbers[buffer], buffer.elements.shape, buffer.elements.dtype) for buffer in makes],
                [numbers[buffer] for buffer in drops],
            )
            for step, makes, drops in lives
        ]
        return Sequence(steps, len(buffers), last_that_allocates(self.steps))


def last_that_allocates(steps):
    """The number of the last step that allocates memory; 0 if none does."""
    return max((number for number, step in enumerate(steps) if step.allocates), default=0)


def joined(pipelines):
    """One pipeline of several, one after the other, with the notes of the first."""
    return Pipeline(tuple(chain.from_iterable(each.steps for each in pipelines)), pipelines[0].notes)


def _lives(steps):
    """Each step with the buffers that are made before it and the buffers that are dropped after it."""
    ends = {}
    for number, step in enumerate(steps):
        for operand in step.operands:
            if isinstance(operand.memory, Buffer):
                first, _ = ends.get(operand.memory, (number, None))
                ends[operand.memory] = first, number
    makes, drops = [[] for _ in steps], [[] for _ in steps]
    for buffer, (first, last) in ends.items():
        makes[first].append(buffer)
        drops[last].append(buffer)
    return zip(steps, makes, drops, strict=True)


class Loop(NamedTuple):
    """A step that runs other steps in several rounds. The operands of a round begin elsewhere in their memories.

    ``distances``: for each round, pairs (memory, bytes). The bytes are added to the address of the memory.
    """

    steps: tuple
    distances: tuple

    allocates = True

    @property
    def operands(self):
        return [operand for step in self.steps for operand in step.operands]

    def kernels(self):
        return list(chain.from_iterable(step.kernels() for step in self.steps))

    def ready(self, numbers):
        steps = [step.ready(numbers) for step in self.steps]
        distances = [[(numbers.get(memory, memory), size) for memory, size in each] for each in self.distances]
        return Looping(steps, last_that_allocates(self.steps), distances)


class Looping(NamedTuple):
    """A ``Loop``, ready to run."""

    steps: list
    last: int  # the last step that allocates
    distances: list  # for each round, pairs (number of a memory, bytes)

    def run_on(self, memories, before=None):
        for rounds, distances in enumerate(self.distances, 1):
            moved = list(memories)
            for number, size in distances:
                moved[number] += size
            for number, step in enumerate(self.steps):
                is_last = rounds == len(self.distances) and number == self.last
                step.run_on(tuple(moved), before if is_last else None)


class Sequence:
    """The work of several steps, for arrays of certain shapes and strides. It runs like ``_repeat.Work``."""

    __slots__ = ("buffers", "last", "steps")

    def __init__(self, steps, buffers, last):
        self.steps, self.buffers, self.last = steps, buffers, last

    def run(self, first, second, result, before=None):
        """Write the result. Each argument is an array or an address.

        ``before`` is called after all memory is allocated and before anything is written to the result.
        """
        memories, made = [*map(address_of, (first, second, result)), *[0] * self.buffers], {}
        for number, (step, makes, drops) in enumerate(self.steps):
            for buffer, shape, dtype in makes:
                made[buffer] = NUMPY.empty(shape, dtype)
                memories[buffer] = address_of(made[buffer])
            step.run_on(tuple(memories), before if number == self.last else None)
            for buffer in drops:
                del made[buffer]
