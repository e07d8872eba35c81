"""Memory that calls take in addition to their arrays. Prints JSON.

``python count_scratch.py suites THREADS EVERY FIRST DTYPE...``: every EVERY-th layer of the benchmark's suites from
FIRST on, with each operation and layout: [call, additional bytes, bytes of the arrays].

``python count_scratch.py limited THREADS``: calls with a limit: [call, additional bytes, additional bytes that
`explain` counts, the limit, bytes of the filter in the type of its sums].

``python count_scratch.py small ALGORITHM THREADS...``: small layers, in plans that are not cut for threads: [call,
additional bytes with each number of threads, ...].
"""

import json
import sys
from itertools import product

import numpy as np
from allocations import most_bytes_more, watch
from operations import OPERATIONS, dtype_of
from problems import parse
from watched import Note

import convgrad_cy as cg
from bench.suites import LAYERS
from convgrad_cy.cpu.machine import tuning
from convgrad_cy.cpu.machine.kernels import compiled

#: Layers that are large enough for a team, and have few tasks.
SMALL = [
    parse(text)
    for text in (
        'mb1ic64ih14oc64kh3ph1n"small"',
        'mb1ic128ih14oc128kh3ph1n"more_channels"',
        'mb1ic64ih28oc96kh1n"pointwise"',
        'mb1g128ic128ih28oc128kh3ph1n"depthwise"',
        'mb1g32ic32ih28oc32kh3ph1n"few_groups"',
    )
]
#: Layers whose families take much memory without a limit: the exchange, in each of its forms; Winograd's algorithm,
#: which keeps filters, tiles or slices; patches; overlaps; long sums; columns; slices of wgrad.
LIMITED = (
    "mb550ic500ih2iw14oc1kh15kw7ph16pw12",
    "mb20000ic1iw85oc1kw31sw2pw2",
    "mb20000ic1iw19oc1kw64pw37",
    "mb20000g2ic2iw58oc4kw64sw2pw7",
    "mb16ic64ih56oc64kh3ph1",
    "mb8ic1ih128oc64kh3ph1",
    "mb32g64ic64ih56oc64kh3ph1",
    "mb16ic64ih56oc64kh4sh2ph1",
    "mb8ic3ih224oc512kh16sh16",
    "mb2ic1iw90000oc300kw400sw160",
    "mb64ic512ih7oc2kh7",
    "mb64ic64ih9oh3oc64kh5sh2",
    "mb16ic5ih40oc3kh3ph1",
)
LIMITS = ((0, "auto"), (1 << 20, "auto"), (40 << 20, "auto"), (8 << 20, "winograd"))
FORMATS = (("NCX", "OIX"), ("NXC", "XIO"))
NAMES = ("conv", "conv_backward_data", "conv_backward_filter")

note = Note()


def formatted(part, shape, data_format, filter_format):
    """A shape in NCX or OIX, in one of the formats."""
    if part == "w":
        return shape if filter_format == "OIX" else (*shape[2:], shape[1], shape[0])
    return shape if data_format == "NCX" else (shape[0], *shape[2:], shape[1])


def scratch(name, problem, formats, dtype, **keywords):
    """(additional bytes, bytes of the arrays) of a call."""
    note(f"{name} {dtype} {formats} {problem} {keywords} threads={cg.get_num_threads()}")
    operation = OPERATIONS[name]
    shapes = [
        formatted(part, getattr(problem, f"{part}_shape"), *formats) for part in (*operation.reads, operation.makes)
    ]
    *inputs, out = [np.ones(shape, dtype_of(dtype)) for shape in shapes]
    more = () if name == "conv" else (out.shape,)
    keywords |= problem.keywords | dict(zip(("data_format", "filter_format"), formats, strict=True))
    compiled.release_memory()  # otherwise a large call may take memory that an earlier one has left
    most_bytes_more()
    getattr(cg, name)(*inputs, *more, out=out, **keywords)
    return most_bytes_more(), sum(array.nbytes for array in (*inputs, out))


def of_suites(threads, every, first, *dtypes):
    with cg.num_threads(int(threads)):
        for layer in LAYERS[int(first) :: int(every)]:
            for name, formats, dtype in product(NAMES, FORMATS, dtypes):
                yield f"{name} {dtype} {formats[0]} {layer.name}", *scratch(name, layer.problem, formats, dtype)


def of_limited(threads):
    with cg.num_threads(int(threads)):
        for i, (text, name, (limit, algorithm)) in enumerate(product(LIMITED, NAMES, LIMITS)):
            formats = FORMATS[(i + i // len(LIMITS)) % 2]
            problem = parse(f'{text}n"limited"')
            operation = OPERATIONS[name]
            shapes = [
                formatted(part, getattr(problem, f"{part}_shape"), *formats)
                for part in (*operation.reads, operation.makes)
            ]
            result = {"x": {"x_shape": shapes[2]}, "w": {"w_shape": shapes[2]}, "y": {}}[operation.makes]
            keywords = problem.keywords | dict(zip(("data_format", "filter_format"), formats, strict=True))
            cg.set_scratch_limit(limit)
            try:
                plan = cg.explain(name, shapes[:2], "float32", algorithm=algorithm, **keywords, **result)
            except ValueError:  # the algorithm cannot compute it, or not within the limit
                continue
            taken, _ = scratch(name, problem, formats, "float32", algorithm=algorithm)
            called = f"{name} {formats[0]} {text} by {plan.family}"
            yield called, taken, plan.details["scratch bytes"], limit, 4 * int(np.prod(problem.w_shape))


def of_small(algorithm, *threads):
    # Plans are made as for two threads.
    tuning.WIDE, tuning.NARROW = (one._replace(tuned_threads=1 << 20) for one in (tuning.WIDE, tuning.NARROW))
    for problem, name, formats in product(SMALL, NAMES, FORMATS):
        if algorithm == "winograd" and (max(problem.kernel) == 1 or problem.groups >= 64):
            continue  # it refuses the filter, or each group is a task
        counted = []
        for number in map(int, threads):
            with cg.num_threads(number):
                counted.append(scratch(name, problem, formats, "float32", algorithm=algorithm)[0])
        yield f"{name} {formats[0]} {problem}", *counted


if __name__ == "__main__":
    watch()
    print(json.dumps(list({"suites": of_suites, "limited": of_limited, "small": of_small}[sys.argv[1]](*sys.argv[2:]))))
