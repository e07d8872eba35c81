"""Real plans with one wrong integer, run in a process of their own. Prints as JSON how each kind of plan ended.

A corrupted plan must be refused or harmless: it has a result, perhaps a wrong one, or finds no memory.
"""

import faulthandler
import json
import signal
import sys
from collections import Counter

import numpy as np
from operations import OPERATIONS
from problems import parse

import convgrad_cy as cg
from convgrad_cy import dtypes
from convgrad_cy.cpu import Operand, families, task_of
from convgrad_cy.problem import ConvProblem

#: A family, a problem and an operation that it takes: all forms of the direct algorithm whose rows differ.
PLANS = (
    ("direct", "conv", "mb2ic5ih9iw11oc7kh3ph1", "direct"),
    ("direct", "conv", "mb2ic40ih9iw11oc70kh3ph1", "direct"),
    ("direct", "conv", "mb1ic256ih4oc256kh3ph1", "direct"),
    ("direct", "conv_backward_data", "mb2ic24ih16oc32kh4sh2ph1", "direct"),
    ("direct", "conv_backward_data", "mb2ic3ih17oc9kh5sh3ph1", "direct"),
    ("direct", "conv", "mb2ic16ih12oc16kh3dh5ph6", "direct"),
    ("direct", "conv_backward_filter", "mb4ic5ih20oc3kh3ph1", "direct"),
    ("direct", "conv_backward_filter", "mb2ic40ih9oc70kh3ph1", "direct"),
    ("small_groups", "conv", "mb2g32ic32ih14oc32kh3ph1", "direct"),
    ("small_groups", "conv", "mb2g16ic32ih14oc32kh3ph1", "direct"),
    ("small_groups", "conv_backward_data", "mb2g32ic32ih13oc32kh3sh2ph1", "direct"),
    ("small_groups", "conv_backward_filter", "mb4g32ic32ih14oc32kh3ph1", "direct"),
    ("winograd", "conv", "mb2ic20ih14oc40kh3ph1", "winograd"),
    ("winograd", "conv_backward_data", "mb2ic20ih15oc40kh4sh2ph1", "winograd"),
    ("winograd", "conv", "mb2ic20ih15oc40kh6sh2ph1", "winograd"),
    ("winograd", "conv_backward_filter", "mb2ic20ih14oc40kh3ph1", "winograd"),
    ("long_sums", "conv", "mb4ic1ih224oc2kh224", "direct"),
)
#: Seconds that a kernel may take with a wrong plan.
MOST_SECONDS = 20


def wrong_values(value):
    near = (0, -1, value - 1, value + 1, 2 * value + 1, value + 1000, value - 1000)
    return sorted({*near, 1 << 20, 1 << 33, -(1 << 33), 1 << 61, -(1 << 61), (1 << 63) - 1, -(1 << 63)} - {value})


def made_of(name, text, algorithm):
    """The family, its pipeline, and the arrays that it runs on."""
    problem, operation = parse(f'{text}n"plan"'), OPERATIONS[name]
    shapes = {part: getattr(problem, f"{part}_shape") for part in "xwy"}
    arrays = [np.ones(shapes[part], np.float32) for part in (*operation.reads, operation.makes)]
    places = [(*operation.reads, operation.makes).index(part) for part in "xwy"]
    g, (x, w, y) = problem.groups, (shapes[part] for part in "xwy")

    def lifted(values, fill):
        return (fill,) * (3 - len(values)) + tuple(values)

    whole = ConvProblem(
        x[0], g, x[1] // g, y[1] // g, lifted(x[2:], 1), lifted(y[2:], 1), lifted(w[2:], 1),
        lifted(problem.stride, 1), lifted(problem.dilation, 1), lifted([pad for pad, _ in problem.padding], 0),
    )  # fmt: skip
    tensors = (
        arrays[places[0]].reshape(x[0], g, -1, *whole.x),
        arrays[places[1]].reshape(g, w[0] // g, w[1], *whole.kernel),
        arrays[places[2]].reshape(y[0], g, -1, *whole.y),
    )
    operands = [Operand(place, 0, tensor) for place, tensor in zip(places, tensors, strict=True)]
    made = {"x": "dgrad", "w": "wgrad", "y": "fprop"}[operation.makes]
    task = task_of(made, whole, dtypes.TABLE[2], algorithm, operands)
    return families.chosen(task)[1], families.pipeline(task), arrays


def corrupted_jobs(job):
    """Copies of a ``Job``, each with one wrong integer."""
    for part in ("steps", "blocks"):
        array = getattr(job.plan, part)
        rows = [0, len(array) - 1] if part == "steps" else [None]
        for row in sorted(set(rows), key=str):
            for column in range(array.shape[-1]):
                place = column if row is None else (row, column)
                for value in wrong_values(int(array[place])):
                    wrong = array.copy()
                    wrong[place] = value
                    yield job._replace(plan=job.plan._replace(**{part: wrong}))


def outcome(run):
    """The end of a plan: a refusal, or no crash."""
    try:
        run()
    except RuntimeError as error:
        assert str(error).startswith("internal error: plan with "), error
        return "refused"
    except (MemoryError, OverflowError, ValueError) as error:
        return type(error).__name__
    return "ran"


def main():
    faulthandler.enable()
    found = {}
    with cg.num_threads(2):
        for number in map(int, sys.argv[1:] or range(len(PLANS))):
            expected, name, text, algorithm = PLANS[number]
            family, made, arrays = made_of(name, text, algorithm)
            assert family.__name__.rpartition(".")[2] == expected, (family, text)
            (job,) = made.jobs()
            made.ready().run(*arrays)
            ended = Counter()
            for wrong in corrupted_jobs(job):
                signal.alarm(MOST_SECONDS)
                wrong = made._replace(steps=tuple([wrong if step is job else step for step in made.steps]))
                ended[outcome(lambda wrong=wrong, arrays=arrays: wrong.ready().run(*arrays))] += 1
                signal.alarm(0)
            found[f"{number} {expected} {name}"] = ended
    print(json.dumps(found))


if __name__ == "__main__":
    main()
