"""Layers as lines of a file such as suites.txt: the layers of each suite, and how often a network has each of them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from convgrad_cy.cli import problem_text

from .case import KERNELS, LAYOUTS, Case

_LINE = re.compile(r'(?P<transposed>transposed )?(?P<problem>\S+n"\w+)(?:\*(?P<count>[1-9]\d*))?"')


@dataclass(frozen=True)
class Layer:
    """A layer of a suite. The network has it ``count`` times. ``line`` is the layer in a file of layers."""

    suite: str
    problem: object
    count: int
    transposed: bool
    line: str

    @property
    def name(self):
        return self.problem.name

    def case(self, layout, dtype):
        problem = self.problem
        return Case(
            name=problem.name,
            groups=problem.groups,
            x=problem.x_shape,
            w=problem.w_shape,
            y=problem.y_shape,
            stride=problem.stride,
            dilation=problem.dilation,
            padding=problem.padding,
            transposed=self.transposed,
            layout=layout,
            dtype=dtype,
        )


class Row(NamedTuple):
    """One kernel of a layer in one layout and type, as a row of a result measures it."""

    layer: Layer
    case: Case
    kernel: str


def parse(text):
    """The layers that a text describes, in its order."""
    layers, suite = [], None
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if section := re.fullmatch(r"\[(\w+)\]", line):
            suite = section[1]
        elif suite is None:
            raise ValueError(f"{line}: stands before the first [suite]")
        elif match := _LINE.fullmatch(line):
            problem = problem_text.parse(match["problem"] + '"')
            layers.append(Layer(suite, problem, int(match["count"] or 1), bool(match["transposed"]), line))
        else:
            raise ValueError(f"{line}: not in the syntax that suites.txt describes")
    names = [layer.name for layer in layers]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{', '.join(sorted(twice))}: there twice")
    return layers


def lines(layers):
    """The lines from which ``parse`` makes these layers."""
    found = []
    for before, layer in zip([None, *layers], layers, strict=False):
        if before is None or before.suite != layer.suite:
            found.append(f"[{layer.suite}]")
        found.append(layer.line)
    return found


LAYERS = parse(Path(__file__).with_name("suites.txt").read_text(encoding="utf-8"))
NAMES = tuple(dict.fromkeys(layer.suite for layer in LAYERS))


def rows(suites=NAMES, operations=KERNELS, layouts=LAYOUTS, dtypes=("float32",), match="", layers=LAYERS):
    """The rows of a run. An operation is a kernel or one of the six functions. ``match`` is searched in names."""
    return [
        Row(layer, case, kernel)
        for dtype in dtypes
        for layer in layers
        if layer.suite in suites and re.search(match, layer.name)
        for layout in layouts
        for case in [layer.case(layout, dtype)]
        for kernel in KERNELS
        if kernel in operations or case.function(kernel) in operations
    ]
