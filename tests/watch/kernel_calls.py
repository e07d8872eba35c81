"""Calls of all functions that reach each kernel of the CPU, and each way around one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from operations import OPERATIONS, PAIRS, dtype_of, real_tensors, to_formats
from problems import parse

import convgrad_cy as cg


@dataclass(frozen=True)
class Case:
    """One problem, and the way to compute it.

    ``spoil`` replaces the first element of x and of y. ``strided``: the case calls NumPy's as_strided, which ends the
    process if Python finds no memory (array_interface_get, NumPy 2.4), so this cannot be tested.
    """

    name: str
    problem: Any
    dtype: str = "float32"
    algorithm: str = "direct"
    formats: tuple = ("NCX", "OIX")
    spoil: float | None = None
    strided: bool = False

    def __str__(self):
        return self.name

    def calls(self):
        """The call of each function: name -> Call."""
        tensors = real_tensors(self.problem, self.dtype)
        arrays = {
            part: np.ascontiguousarray(to_formats(part, array, *self.formats))
            for part, array in zip("xwy", tensors, strict=True)
        }
        if self.spoil is not None:
            for part in "xy":
                arrays[part].flat[0] = self.spoil
        keywords = {"data_format": self.formats[0], "filter_format": self.formats[1], "algorithm": self.algorithm}
        keywords |= self.problem.keywords
        calls = {}
        for name, operation in OPERATIONS.items():
            inputs, shape = [arrays[part] for part in operation.reads], arrays[operation.makes].shape
            asked = {"conv_transpose": {"output_shape": shape}}.get(name, {})
            more = () if name in ("conv", "conv_transpose", "conv_transpose_backward_data") else (shape,)
            calls[name] = Call(name, inputs, more, keywords | asked, (shape,), dtype_of(self.dtype))
        for name, reads in PAIRS.items():
            inputs = [arrays[part] for part in reads]
            shapes = tuple(array.shape for array in inputs[1:])
            calls[name] = Call(name, inputs, (), keywords, shapes, dtype_of(self.dtype))
        return calls


@dataclass(frozen=True, eq=False)
class Call:
    """One call. ``shapes`` are the shapes of its one or two results."""

    name: str
    inputs: list
    more: tuple
    keywords: dict
    shapes: tuple
    dtype: np.dtype

    def outs(self, value=0):
        """New arrays for the results, all of whose bytes are ``value``."""
        outs = [np.empty(shape, self.dtype) for shape in self.shapes]
        for out in outs:
            out.view(np.uint8)[...] = value
        return outs

    def bare(self, outs=None):
        """The return value of the function. The result is written to ``outs`` if given."""
        out = None if outs is None else outs if self.name in PAIRS else outs[0]
        return getattr(cg, self.name)(*self.inputs, *self.more, out=out, **self.keywords)

    def run(self, outs=None):
        """The results, as a list."""
        result = self.bare(outs)
        return [result] if isinstance(result, np.ndarray) else list(result)


def _cases():
    yield Case("direct", parse('mb2ic5ih8oc7kh3ph1n"small"'))
    yield Case("direct_float64_packed", parse('mb2ic40ih14oc48kh3ph1n"packed"'), "float64")
    yield Case("direct_int32_channels_last", parse('mb2g2ic24ih12oc40kh3ph1n"groups"'), "int32", formats=("NXC", "XIO"))
    yield Case("direct_bfloat16", parse('mb2ic24ih14oc40kh3ph1n"halves"'), "bfloat16")
    yield Case("pairs_of_bfloat16", parse('mb2ic24ih14oc40kh3ph1n"halves"'), "bfloat16", "auto")
    yield Case("lanes", parse('mb2g64ic64ih26oc64kh3ph1n"lanes"'))
    yield Case("lanes_float16", parse('mb2g64ic64ih26oc64kh3sh2ph1n"lanes"'), "float16", formats=("NXC", "XIO"))
    yield Case("phases", parse('mb2ic24ih25oc40kh3sh2ph1n"phases"'))
    yield Case("slices", parse('mb5ic3ih17oc2kh3ph1n"slices"'))
    yield Case("wide_slices", parse('mb4ic16ih40oc16kh3ph1n"wide"'))
    patches = parse('mb1ic3ih64oc512oh16kh4sh4n"patches"')
    yield Case("patches", patches, strided=True)
    yield Case("patches_copied_filter", patches, formats=("NXC", "OIX"), strided=True)
    yield Case("overlaps", parse('mb2ic1iw4128oc200ow64kw160sw64pw32n"overlaps"'), strided=True)
    columns = parse('mb1ic20ih11oc40oh4kh8n"columns"')
    yield Case("columns", columns, algorithm="auto", strided=True)
    yield Case("columns_copied_filter", columns, formats=("NXC", "OIX"), algorithm="auto", strided=True)
    yield Case("few_taps_reached", parse('mb2ic5iw2oc7ow2kw43pw21n"reached"'), strided=True)
    exchanged = parse('mb3g2ic24ih14oc20oh2kh13n"exchanged"')
    yield Case("exchanged", exchanged, strided=True)
    yield Case("exchanged_reversed", parse('mb2g8ic16ih5oc24oh6kh12ph6n"reversed"'), strided=True)
    for name, spoil in (("", None), ("_nan", np.nan), ("_huge", 3e38)):
        yield Case(f"winograd{name}", parse('mb2ic32ih26oc32kh3ph1n"tiles"'), algorithm="winograd", spoil=spoil)
    yield Case("winograd_auto_nan", parse('mb2ic64ih28oc64kh3ph1n"tiles"'), algorithm="auto", spoil=np.nan)
    reordered = parse('mb2ic32ih26oc32kh4sh2ph1n"reordered"')
    yield Case("reordered", reordered, algorithm="winograd", strided=True)
    yield Case("reordered_nan", reordered, algorithm="winograd", spoil=np.nan, strided=True)
    yield Case("winograd_float16_3d", parse('mb1ic16id10ih10oc16kd3pd1n"volume"'), "float16", "winograd")


#: The cases by name.
CASES = {case.name: case for case in _cases()}
