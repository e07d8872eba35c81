"""The rules of plan/pipeline.py: a MemoryError must leave the result unchanged."""

import numpy as np
import pytest

from convgrad_cy import cpu
from convgrad_cy.cpu import families
from convgrad_cy.cpu.plan.operand import Operand
from convgrad_cy.cpu.plan.pipeline import Loop, ReadyLoop, Sequence, last_that_allocates
from convgrad_cy.cpu.plan.task import WRITERS
from convgrad_cy.cpu.rewrites import columns, exchanged, overlaps
from convgrad_cy.dtypes import lookup
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

RESULT = 2  # index in the addresses
ONES = (1, 1, 1)
DENSE, STRIDED = (((1, 3, 3), (1, step, step), ONES, (0, 1, 1)) for step in (1, 2))
CHANNELS_LAST = (0, 1, 3, 4, 5, 2)
CASES = {
    "columns in parts": (columns, DGRAD, ConvProblem(2, 1, 40, 48, (1, 12, 10), (1, 3, 2), (1, 10, 9))),
    "cells": (
        overlaps,
        DGRAD,
        ConvProblem(2, 1, 3, 64, (1, 32, 32), (1, 16, 16), (1, 5, 5), (1, 2, 2), ONES, (0, 2, 2)),
    ),
    "an exchanged data gradient": (exchanged, DGRAD, ConvProblem(1, 3, 18, 24, (1, 11, 11), (1, 3, 3), (1, 9, 9))),
    "an exchanged filter gradient": (exchanged, WGRAD, ConvProblem(1, 3, 18, 24, (1, 11, 11), (1, 3, 3), (1, 9, 9))),
    "a strided data gradient": (None, DGRAD, ConvProblem(8, 1, 64, 64, (1, 28, 28), (1, 14, 14), *STRIDED)),
    "a forward convolution": (None, FPROP, ConvProblem(8, 1, 64, 64, (1, 28, 28), (1, 28, 28), *DENSE)),
}


def pipeline_of(family, operation, problem, last, dtype):
    """The pipeline of a task whose operands have the indices of a call: 0 and 1 for inputs, 2 for the result."""
    sizes = (problem.x_channels, problem.x), (problem.y_channels, problem.y)
    x, y = ((problem.batch, problem.groups, channels, *extents) for channels, extents in sizes)
    shapes = x, (problem.groups, problem.y_channels, problem.x_channels, *problem.kernel), y
    written, dtype = WRITERS.index(operation), lookup(np.dtype(dtype))
    others, operands = iter((0, 1)), []
    for place, shape in enumerate(shapes):
        view = Operand.new(shape, dtype.view, CHANNELS_LAST if last else None).view
        operands.append(Operand(RESULT if place == written else next(others), 0, view))
    task = cpu.task_of(operation, problem, dtype, "auto", operands)
    few = task.machine.tuning._replace(column_bytes=20_000)  # several parts of columns
    task = task._replace(machine=task.machine._replace(own_tuning=few))
    if family is None:
        return families.pipeline(task)
    after = families.PREFERENCE[families.PREFERENCE.index(family) + 1 :]
    return family.pipeline(task, lambda inner: families.pipeline(inner, after))


def written_by(step):
    """The memories that a step writes."""
    if isinstance(step, Loop):
        return {memory for inner in step.steps for memory in written_by(inner)}
    if not step.jobs():
        return {step.target.memory}
    (job,) = step.jobs()
    return {job.operands[1 if job.task.operation == WGRAD else 2].memory}


@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("last", (False, True), ids=("channels first", "channels last"))
@pytest.mark.parametrize("case", CASES)
def test_the_result_is_written_after_all_allocations(case, last, dtype):
    family, operation, problem = CASES[case]
    pipeline = pipeline_of(family, operation, problem, last, dtype)
    steps, work = pipeline.steps, pipeline.ready()
    end = last_that_allocates(steps)
    assert RESULT in set().union(*map(written_by, steps[end:]))
    assert not any(RESULT in written_by(step) for step in steps[:end])
    if isinstance(work, Sequence):  # not the work of a single kernel
        assert work.last == end
        assert not any(allocated for _, allocated, _ in work.steps[end + 1 :])
    for loop in (step for step in steps if isinstance(step, Loop)):
        assert len(loop.distances) > 1 and RESULT not in written_by(loop)


def test_columns_have_loops():
    _, operation, problem = CASES["columns in parts"]
    assert any(isinstance(step, Loop) for step in pipeline_of(columns, operation, problem, False, "float32").steps)


def test_a_loop_calls_before_once():
    """It must be called in the last round, by the last step that allocates, and see the addresses of this round."""
    calls = []

    class Step:
        def __init__(self, name):
            self.name = name

        def run_on(self, addresses, before=None):
            calls.append((self.name, addresses, before))

    loop = ReadyLoop([Step("copy"), Step("kernel"), Step("store")], 1, [[(0, 0)], [(0, 8), (3, 16)]])
    loop.run_on((100, 200, 300, 400), "before")
    assert calls == [
        ("copy", (100, 200, 300, 400), None),
        ("kernel", (100, 200, 300, 400), None),
        ("store", (100, 200, 300, 400), None),
        ("copy", (108, 200, 300, 416), None),
        ("kernel", (108, 200, 300, 416), "before"),
        ("store", (108, 200, 300, 416), None),
    ]
