"""Every variant of every kernel on one GPU, exact against the CPU: python -m bench.gpu_variants [--family ...].

A row forces one choice of a family (bench/gpu_forced.py) on problems with tails in all sizes: integers, then NaN and
infinity where padding touches, which must reach exactly the results that the definition says. Results are poisoned
before, and formed twice. A row that raises names its launch; after an error that takes the GPU from a process the next
row has a new one. Needs CuPy and ml_dtypes.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np

import convgrad_cy as cg
from convgrad_cy.gpu import mma, reduce, work

from . import gpu_forced, suites
from .gpu_child import STICKY, Answers, Child, missing
from .gpu_launches import name_of, watched
from .gpu_report import save
from .report import markdown_table

KERNELS = ("fprop", "dgrad", "wgrad")
READ = {"fprop": "xw", "dgrad": "yw", "wgrad": "xy"}
#: Dtype and precision. Of float32 each precision is another kind where products are formed on tensor cores.
KINDS = {
    "float16": ("float16", "high"),
    "bfloat16": ("bfloat16", "high"),
    "float32": ("float32", "ieee"),
    "float32-high": ("float32", "high"),
    "float32-medium": ("float32", "medium"),
    "float64": ("float64", "high"),
    "int32": ("int32", "high"),
}
#: Of each family; the longest first.
KINDS_OF = {
    "depthwise": ("float16", "bfloat16", "float32", "float64", "int32"),
    "mma": ("float32-high", "float32-medium", "bfloat16", "float16", "float64"),
    "simt": ("float16", "bfloat16", "float32", "float64", "int32"),
    "gather": ("float16", "bfloat16", "float32", "float64", "int32"),
}
GROUPS = tuple(f"{family} {kind}" for family, kinds in KINDS_OF.items() for kind in kinds)
#: How x and y, and how w lie in memory: the order of the axes of NCX and OIX, the spatial ones as X.
FORMATS = (("NCX", "OIX"), ("NXC", "OXI"), ("NXC", "XIO"))
#: By family; filters of few channels are read alike in all orders.
FORMATS_OF = {**dict.fromkeys(KINDS_OF, FORMATS), "depthwise": FORMATS[:2]}
SOURCES = {
    "depthwise": ("depthwise.cu", "depthwise_wgrad.cu"),
    "mma": ("mma.cu", "mma_wgrad.cu"),
    "simt": ("simt.cu",),
    "gather": ("gather.cu",),
}
#: The status if the rows that there was time for were right.
_LEFT_OUT = 4
#: Numbers that no result is, in bytes: large in every floating type.
_POISON = b"\x7b"
#: Seconds after which a row hangs. The first of a process makes its context, and every one may compile.
PATIENCE = 60

#: A choice is forced on the first ones: larger than any tile, with a remainder in each size, and a small one of whole
#: vectors. The others have strides, groups, one and three axes, and sums for which gather.cu has blocks of each size.
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
        mb1ic16ih9oc24kh3ph1n"vectors"
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
    """The sets of problems on each of which every choice is forced; what can be chosen is seen from the first."""
    if family == "depthwise":
        # Along a stride there are more shapes, but for dgrad, whose phases have none.
        return [("tails_depthwise",) if kernel == "dgrad" else ("tails_depthwise_stride2",)]
    return [(f"tails_{kernel}", "vectors")] if family in ("mma", "simt") else []


class Row(NamedTuple):
    """Problems for which a family takes all tasks, with one of its choices, or its own if it is None."""

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
    """All of a family and a kind, given ``task_of(kernel, problem, kind, formats)``."""
    found = []
    for kernel in KERNELS:
        for formats in FORMATS_OF[family]:
            for problems in forced_problems(family, kernel):
                task = task_of(kernel, problems[0], kind, formats)
                if gpu_forced.can(family, task):
                    choices = gpu_forced.choices(family, task)
                    found += [Row(family, kind, kernel, formats, problems, choice) for choice in choices]
            for problem in PLANNED:
                if gpu_forced.can(family, task_of(kernel, problem, kind, formats)):
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
    """What is in x, w and y, with a name for it: integers small enough for exact sums, and what is not finite."""
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


def called(kernel, case, arrays, **keywords):
    """One of the three kernels, whatever library the arrays x, w and y are of."""
    x, w, y = arrays
    keywords |= {"stride": case.stride, "padding": case.padding, "dilation": case.dilation, "groups": case.groups}
    if kernel == "fprop":
        return cg.conv(x, w, **keywords)
    if kernel == "dgrad":
        return cg.conv_backward_data(y, w, case.x, **keywords)
    return cg.conv_backward_filter(x, y, case.w, **keywords)


def _axes(order, rank):
    """The numbers of the axes of NCX or OIX in the order in which they lie in memory."""
    places = {"N": (0,), "C": (1,), "O": (0,), "I": (1,), "X": range(2, rank)}
    return [axis for letter in order for axis in places[letter]]


def to_device(array, order):
    """A copy on the GPU whose axes lie in memory in this order."""
    import cupy

    axes = _axes(order, array.ndim)
    lying = np.ascontiguousarray(array.transpose(axes))
    memory = cupy.array(lying.reshape(-1).view(np.uint8)).data
    return cupy.ndarray(lying.shape, lying.dtype, memory).transpose(*np.argsort(axes).tolist())


def to_host(array, order):
    import cupy

    axes = _axes(order, array.ndim)
    shape = [array.shape[axis] for axis in axes]
    lying = cupy.ndarray((array.nbytes,), np.uint8, array.data).get().view(array.dtype).reshape(shape)
    return lying.transpose(np.argsort(axes))


def _orders(formats):
    data, filter = formats
    return {"x": data, "w": filter, "y": data}


def _on_device(row, case, tensors):
    """The call on the GPU as a function, its result, and how that lies in memory."""
    orders = _orders(row.formats)
    written = {"fprop": "y", "dgrad": "x", "wgrad": "w"}[row.kernel]
    arrays = [to_device(tensors[name], orders[name]) for name in "xwy"]
    poison = np.frombuffer(_POISON * tensors[written].nbytes, tensors[written].dtype).reshape(tensors[written].shape)
    out = to_device(poison, orders[written])
    return lambda: called(row.kernel, case, arrays, out=out, precision=KINDS[row.kind][1]), out, orders[written]


def task_on_device(kernel, problem, kind, formats):
    """The task of a call on arrays on the GPU."""
    case = case_of(problem, kind)
    (_, tensors), *_ = inputs(kernel, case)
    call, *_ = _on_device(Row("", kind, kernel, formats, (problem,)), case, tensors)
    return gpu_forced.task_of(call)


def calls_of(row):
    """(problem, case, what is in the tensors, tensors); what is not finite on the last problem only, which is small."""
    for problem in row.problems:
        case = case_of(problem, row.kind)
        for what, tensors in inputs(row.kernel, case):
            yield problem, case, what, tensors
            if problem != row.problems[-1]:
                break


def differences(row):
    """What is wrong with the results of a row on the GPU, in words, one after another."""
    for problem, case, what, tensors in calls_of(row):
        expected = called(row.kernel, case, [tensors[name] for name in "xwy"], algorithm="direct").astype(np.float64)
        results = []
        for _ in range(2):
            call, out, order = _on_device(row, case, tensors)
            call()
            results.append(to_host(out, order).astype(np.float64))
        first, again = results
        wrong = (first != expected) & ~(np.isnan(first) & np.isnan(expected))
        if wrong.any():
            yield f"{problem}, {what}: {wrong.sum()} of {wrong.size}, the first at {np.argwhere(wrong)[0].tolist()}"
        elif not np.array_equal(first, again, equal_nan=True):
            yield f"{problem}, {what}: not the same twice"


def is_taken(row, launched):
    """Whether kernels of the row's family ran, with its choice."""
    wanted = {} if row.choice is None else row.choice.macros()
    return any(
        source in SOURCES[row.family] and wanted.items() <= dict(macros).items() for source, _, macros in launched
    )


class Worker:
    """What a process with the GPU is asked for."""

    def __init__(self):
        import cupy

        # An allocation for each array: what lies beyond one is nobody's memory, as compute-sanitizer then sees.
        cupy.cuda.set_allocator(None)
        cg.set_num_threads(1)  # there is such a process for every processor

    def about(self):
        import cupy

        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        device = work.device_of(0)
        every = {*reduce.variants(), *(mma.variants((device,)) if device.arch >= 80 else ())}
        about = {"gpu": name, **device._asdict(), "cupy": cupy.__version__, "convgrad_cy": cg.__version__}
        return {"about": about, "variants": sorted(name_of(*variant) for variant in every)}

    @cache  # noqa: B019
    def _rows(self, group):
        return {row.name: row for row in rows(*group.split(), task_on_device)}

    def rows(self, group):
        return {"rows": list(self._rows(group))}

    def row(self, group, name):
        """What is wrong with a row, and the variants that it launched."""
        row = self._rows(group)[name]
        with gpu_forced.taking(row.family, row.choice), watched() as launched:
            wrong = list(differences(row))
        if not is_taken(row, launched):
            wrong.append("no kernel of this family with this choice was launched")
        return {"wrong": wrong, "launched": sorted({name_of(*one) for one in launched})}


class Results:
    """What is found, in a file after each row, until ``end`` on the monotonic clock.

    Of rows that are right it has the number, of the others the names and all that was found.
    """

    def __init__(self, path, end, about, variants):
        self.path, self.end, self.variants, self.lock = path, end, set(variants), Lock()
        self.data = {"about": about, "groups": {}, "faults": {}, "left_out": [], "unreached": []}

    def add(self, group, name, reply):
        with self.lock:
            self.variants -= set(reply.pop("launched", ()))
            state = "RAISED" if "failed" in reply else "WRONG" if reply["wrong"] else "PASS"
            states = self.data["groups"].setdefault(group, {})
            states[state] = states.get(state, 0) + 1
            if state != "PASS":
                self.data["faults"][name] = {"state": state, **reply}
                print(f"{state} {name}\n    {explained(reply)}", flush=True)
            self.save()

    def leave_out(self, name):
        with self.lock:
            self.data["left_out"].append(name)

    def save(self):
        raised = {group.split()[0] for group, states in self.data["groups"].items() if "RAISED" in states}
        self.data["families"] = ",".join(name for name in gpu_forced.FAMILIES if name not in raised or name == "gather")
        if self.path is not None:
            save(self.path, self.data)


def explained(reply):
    """A fault in words, with the launch that it comes from."""
    text = reply.get("failed") or "; ".join(reply["wrong"])
    return text + (f"\n    launch: {reply['launch']}" if reply.get("launch") else "")


def table(data):
    """The states of the rows, families by types, and the first fault of each pair."""
    counts = {tuple(group.split()): Counter(states) for group, states in data["groups"].items()}
    kinds = [kind for kind in KINDS if any(kind == other for _, other in counts)]

    def cell(family, kind):
        states = counts.get((family, kind), Counter())
        worst = next((state for state in ("RAISED", "WRONG") if states[state]), None)
        return f"**{worst} {states[worst]} of {states.total()}**" if worst else f"PASS {states['PASS']}" * bool(states)

    lines = [[name, *(cell(name, kind) for kind in kinds)] for name in KINDS_OF if any(name == of for of, _ in counts)]
    faults = {}
    for name, reply in data["faults"].items():
        faults.setdefault(tuple(name.split()[:2]), f"{name}: {explained(reply)}")
    left = data["left_out"]
    return "\n".join(
        [
            markdown_table(["family", *kinds], lines),
            *faults.values(),
            *([f"No time was left for {len(left)} rows: {left[0]} and others."] if left else []),
            *(f"No row launched {name}" for name in data["unreached"]),
        ]
    )


def run_group(group, worker, options, results):
    """The rows of a group, as long as there is time."""
    found = worker.ask("rows", PATIENCE, group=group)
    if "failed" in found:
        results.add(group, f"{group} rows", found)
    for name in found.get("rows", ()):
        if not re.search(options.match, name):
            continue
        if time.monotonic() > results.end:
            results.leave_out(name)
            continue
        reply = worker.ask("row", PATIENCE, group=group, name=name)
        results.add(group, name, reply)
        if options.here and "exit" in reply:
            results.end = 0  # there is no other process for what is left


def run(groups, options, folder):
    """The results of all groups, some of them at a time."""
    end = time.monotonic() + options.seconds

    def asked(name):
        return Answers(Worker()) if options.here else Child("variants", folder / name)

    def one(group):
        worker = asked(group.replace(" ", "-"))
        try:
            run_group(group, worker, options, results)
        finally:
            worker.end()

    first = asked("about")
    about = first.ask("about", PATIENCE)
    first.end()
    if "failed" in about:
        raise SystemExit(f"nothing can be run: {explained(about)}")
    results = Results(options.out, end, about["about"], about["variants"])
    with ThreadPoolExecutor(1 if options.here else options.jobs) as pool:
        list(pool.map(one, groups))
    if tuple(groups) == GROUPS and not options.match:
        results.data["unreached"] = sorted(results.variants)
    results.save()
    return results.data


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_variants", description=__doc__.splitlines()[0])
    parser.add_argument("--family", choices=list(KINDS_OF), action="append", help="can be repeated")
    parser.add_argument("--dtype", choices=list(KINDS), action="append", help="float32 is each precision of it")
    parser.add_argument("--match", default="", help="a regular expression, searched in the names of rows")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, each for a family and a type")
    parser.add_argument("--seconds", type=float, default=1e9, help="rows that would begin later are left out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON, written after each row")
    parser.add_argument(
        "--here", nargs=2, metavar=("FAMILY", "TYPE"), help="these alone and in this process, for compute-sanitizer"
    )
    parser.add_argument("--list", action="store_true", help="the families and types")
    options = parser.parse_args(argv)
    groups = [
        group
        for group in GROUPS
        for family, kind in [group.split()]
        if family in (options.family or KINDS_OF) and {kind, KINDS[kind][0]} & {*(options.dtype or KINDS)}
    ]
    if options.here:
        groups = [" ".join(options.here)]
        if groups[0] not in GROUPS:
            parser.error(f"--here must be a line of --list, was {groups[0]!r}")
    if options.list:
        print(*groups, sep="\n")
        return
    reason = missing()
    if reason is not None:
        parser.exit(2, f"python -m bench.gpu_variants: {reason}\n")
    with tempfile.TemporaryDirectory() as folder:
        data = run(groups, options, Path(folder))
    print(table(data))
    sys.exit(status(data, options))


def status(data, options):
    """0 if all is right, 4 if all is that time was left for, that of ``gpu_child`` if the GPU is gone, else 1."""
    if options.here and any("exit" in reply for reply in data["faults"].values()):
        return STICKY
    if data["faults"] or data["unreached"] or not data["groups"]:
        return 1
    return _LEFT_OUT if data["left_out"] else 0


if __name__ == "__main__":
    main()
