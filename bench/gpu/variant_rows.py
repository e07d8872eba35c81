"""The rows of bench.gpu.variants: problems for each choice of each family, and the numbers in their tensors."""

from typing import NamedTuple

import numpy as np

from .. import suites
from . import forced

KERNELS = ("fprop", "dgrad", "wgrad")
READ = {"fprop": "xw", "dgrad": "yw", "wgrad": "xy"}
#: Dtype and precision. For float32, each precision is another kind if tensor cores form the products.
KINDS = {
    "float16": ("float16", "high"),
    "bfloat16": ("bfloat16", "high"),
    "float32": ("float32", "ieee"),
    "float32-high": ("float32", "high"),
    "float32-medium": ("float32", "medium"),
    "float64": ("float64", "high"),
    "int32": ("int32", "high"),
}
#: Kinds of each family, the longest first.
KINDS_OF = {
    "depthwise": ("float16", "bfloat16", "float32", "float64", "int32"),
    "mma": ("float32-high", "float32-medium", "bfloat16", "float16", "float64"),
    "simt": ("float16", "bfloat16", "float32", "float64", "int32"),
    "gather": ("float16", "bfloat16", "float32", "float64", "int32"),
}
GROUPS = tuple(f"{family} {kind}" for family, kinds in KINDS_OF.items() for kind in kinds)
#: Layouts of x and y, and of w: the order of the axes of NCX and OIX in memory, the spatial ones as X.
FORMATS = (("NCX", "OIX"), ("NXC", "OXI"), ("NXC", "XIO"))
#: Formats by family. Filters of few channels are read alike in all orders.
FORMATS_OF = {**dict.fromkeys(KINDS_OF, FORMATS), "depthwise": FORMATS[:2]}
SOURCES = {
    "depthwise": ("depthwise.cu", "depthwise_wgrad.cu"),
    "mma": ("mma.cu", "mma_engine.cu", "mma_wgrad.cu"),
    "simt": ("simt.cu",),
    "gather": ("gather.cu",),
}
#: Each choice is forced on the first ones: a layer larger than any tile with a remainder in each size, a small one of
#: whole vectors, and one whose groups and phases can be joined. The others have strides, groups, one and three axes,
#: and sums for which gather.cu has blocks of each size.
LAYERS = {
    layer.name: layer
    for layer in suites.parse(
        """
        [forced]
        mb1ic12ih17oc136kh3ph1n"tails_fprop"
        mb1ic136ih34oc44kh3sh2ph1n"tails_dgrad"
        mb1ic31ih17oc136kh3ph1n"tails_wgrad"
        mb2g24ic24ih5iw13oc24kh2kw3ph1pw1n"tails_depthwise"
        mb2g24ic24ih6iw27oc24kh3sh2ph1n"tails_depthwise_stride2"
        mb1ic32ih8oc40kh3ph1n"vectors"
        mb1g8ic32ih12iw10oc40kh3sh2ph1n"joined"
        [planned]
        mb2ic40ih13iw11oc44kh3ph1n"tails"
        mb2ic24ih12iw9oc20kh4sh2ph1n"phases"
        mb1g4ic16ih9oc24kh3sh2dh1ph2n"groups"
        mb2g36ic36ih10oc36kh3ph1n"depthwise"
        mb3g16ic16ih40oc16kh3ph1n"depthwise_large"
        mb2g20ic20ih9oc20kh3sh2ph1n"depthwise_stride2"
        mb1ic17iw40oc9kw5sw3pw2n"one_axis"
        mb1ic6id6ih5iw7oc7kd3kh3kw2pd1ph1pw1n"three_axes"
        mb2ic5ih6oc4kh3ph1n"sum_of_72"
        mb2ic5ih10oc4kh3ph1n"sum_of_200"
        mb2ic5ih14oc4kh3ph1n"sum_of_392"
        mb2ic3ih18oc2kh3ph1n"sum_of_648"
        """
    )
}
PLANNED = tuple(name for name, layer in LAYERS.items() if layer.suite == "planned")


def forced_problems(family, kernel):
    """Sets of problems on which every choice is forced. The first problem of a set determines the possible choices."""
    if family == "depthwise":
        # A stride has more shapes, except in dgrad, whose phases have no stride.
        return [("tails_depthwise",) if kernel == "dgrad" else ("tails_depthwise_stride2",)]
    sets = {"mma": [(f"tails_{kernel}", "vectors"), ("joined",)], "simt": [(f"tails_{kernel}", "vectors")]}
    return sets.get(family, [])


class Row(NamedTuple):
    """Problems for which a family takes all tasks, with one of its choices, or with its own choice if it is None."""

    family: str
    kind: str
    kernel: str
    formats: tuple
    problems: tuple
    choice: object = None

    @property
    def name(self):
        how = f"{self.problems[0]} {'as planned' if self.choice is None else self.choice}"
        return f"{self.family} {self.kind} {self.kernel} {'-'.join(self.formats)} {how}"


def rows(family, kind, task_of):
    """All rows of a family and a kind. ``task_of(kernel, problem, kind, formats)`` makes a task."""
    found = []
    for kernel in KERNELS:
        for formats in FORMATS_OF[family]:
            for problems in forced_problems(family, kernel):
                if forced.can(family, task := task_of(kernel, problems[0], kind, formats)):
                    choices = forced.choices(family, task)
                    found += [Row(family, kind, kernel, formats, problems, choice) for choice in choices]
            for problem in PLANNED:
                if forced.can(family, task_of(kernel, problem, kind, formats)):
                    found.append(Row(family, kind, kernel, formats, (problem,)))
    return found


def dtype_of(name):
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def case_of(problem, kind):
    return LAYERS[problem].case("NCX", KINDS[kind][0])


def inputs(kernel, case):
    """Tensors x, w and y with a name: integers small enough for exact sums, and values that are not finite."""
    dtype, random = dtype_of(case.dtype), np.random.default_rng(0)
    shapes = dict(zip("xwy", (case.x, case.w, case.y), strict=True))
    integers = {name: random.integers(-3, 4, shape).astype(dtype) for name, shape in shapes.items()}
    yield "integers", integers
    if case.dtype == "int32":
        return
    ones = {name: np.ones(shape, dtype) for name, shape in shapes.items()}
    for name in READ[kernel]:
        spoiled = integers[name].copy()
        spoiled.reshape(-1)[[0, spoiled.size // 2, -1]] = np.nan, -np.inf, np.inf
        yield f"NaN and infinity in {name}", {**integers, name: spoiled}
        yield f"{name} infinite", {**ones, name: np.full(shapes[name], np.inf, dtype)}


def calls_of(row):
    """(problem, case, name of the tensors, tensors). Only the last problem, which is small, has values not finite."""
    for problem in row.problems:
        case = case_of(problem, row.kind)
        for what, tensors in inputs(row.kernel, case):
            yield problem, case, what, tensors
            if problem != row.problems[-1]:
                break


def is_taken(row, launched):
    """Whether kernels of the row's family ran, with its choice."""
    wanted = {} if row.choice is None else row.choice.macros()
    return any(
        source in SOURCES[row.family] and wanted.items() <= dict(macros).items() for source, _, macros in launched
    )
