"""``explain`` counts the tasks that a kernel has."""

from collections import Counter
from itertools import accumulate

import numpy as np
import pytest
from problems import PROBLEMS, parse

import convgrad_cy as cg
from convgrad_cy.cpu.machine.kernels import compiled

MOST = 1 << 16  # tasks


def shapes_of(problem, name):
    """The shapes of a function's two arrays, and its other arguments."""
    x, w, y = problem.x_shape, problem.w_shape, problem.y_shape
    return {
        "conv": ((x, w), {}),
        "conv_backward_data": ((y, w), {"x_shape": x}),
        "conv_backward_filter": ((x, y), {"w_shape": w}),
    }[name]


@pytest.mark.parametrize("name", ("conv", "conv_backward_data", "conv_backward_filter"))
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_tasks(problem, name):
    """The tasks must be counted in some last loops: loops before them pack the filter, and one may leave zeros."""
    shapes, asked = shapes_of(problem, name)
    keywords = {**asked, **problem.keywords, "algorithm": "direct"}
    details = cg.explain(name, shapes, **keywords).details
    if "tasks" not in details:
        return
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    _, _, times = compiled.time_tasks(lambda: getattr(cg, name)(*arrays, **keywords), MOST)
    loops = list(Counter(loop for loop, *_ in times).values())
    if name == "conv_backward_filter":  # after each loop of sums, another one adds slices or stores lanes
        assert details["tasks"] in (*loops, sum(loops[::2]))
    else:
        assert details["tasks"] in accumulate(reversed(loops))


@pytest.mark.parametrize("threads", (2, 16, 64))
@pytest.mark.parametrize(
    "text",
    (
        *("mb4ic32ih28oc64kh3ph1", "mb2ic64ih14oc128kh3ph1", "mb2g4ic32ih20oc64kh3ph1"),
        *("mb2ic32ih28oc64oh14kh4sh2ph1", "mb2ic64ih30oc64oh9kh6sh3"),
    ),
)
@pytest.mark.parametrize("name", ("conv", "conv_backward_data", "conv_backward_filter"))
def test_tasks_of_tiles(name, text, threads):
    """Winograd's tasks must be counted, also in plans that are cut for many threads."""
    problem = parse(f'{text}n"tiles"')
    shapes, asked = shapes_of(problem, name)
    keywords = {**asked, **problem.keywords, "algorithm": "winograd"}
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape, np.float32) for shape in shapes]
    with cg.num_threads(threads):
        details = cg.explain(name, shapes, **keywords).details
        _, _, times = compiled.time_tasks(lambda: getattr(cg, name)(*arrays, **keywords), MOST)
    assert details["tasks"] in Counter(loop for loop, *_ in times).values()
