"""Kernels check their plans: they refuse a plan that leaves its tensors, and no correct plan."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import assume, given, settings
from test_plan import depthwise, problems

from convgrad_cy import dtypes
from convgrad_cy.cpu import Operand, families, task_of
from convgrad_cy.problem import DGRAD, FPROP, WGRAD

HERE = Path(__file__).parent
FLOAT32 = dtypes.TABLE[2]


def operands_of(problem):
    """x, w and y on memory that nothing touches."""
    n, g, i, o = problem.batch, problem.groups, problem.x_channels, problem.y_channels
    shapes = (n, g, i, *problem.x), (g, o, i, *problem.kernel), (n, g, o, *problem.y)
    return [Operand(i, 0, np.empty(shape, np.float32)) for i, shape in enumerate(shapes)]


@settings(max_examples=200)
@given(problem=problems | depthwise)
def test_plans_that_are_right_pass(problem):
    assume(problem.batch * problem.groups * max(problem.x_channels, problem.y_channels) < 100_000)
    for operation in (FPROP, DGRAD, WGRAD):
        for algorithm in ("auto", "direct"):
            task = task_of(operation, problem, FLOAT32, algorithm, operands_of(problem))
            assert families.pipeline(task).ready() is not None


def test_corrupted_plans_end_no_process():
    """No signal may end the process if an integer of any family's plan is off by one, by a lot, negative or huge."""
    path = os.pathsep.join([str(HERE.parents[1]), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE / "corrupted_plans.py")]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    assert {name.split()[1] for name in found} == {"direct", "small_groups", "winograd", "long_sums"}
    for name, ended in found.items():
        assert ended["refused"] > 0.5 * sum(ended.values()), (name, ended)
