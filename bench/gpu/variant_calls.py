"""The process that runs rows of bench.gpu.variants: each call on the GPU and on the CPU, and their differences."""

from functools import cache

import numpy as np

import convgrad_cy as cg
from convgrad_cy.gpu import mma, reduce, work

from . import forced
from .launches import name_of, watched
from .variant_rows import KINDS, Row, calls_of, case_of, inputs, is_taken, rows

#: A byte of poison. The number is no result: it is large in every floating type.
_POISON = b"\x7b"


def called(kernel, case, arrays, **keywords):
    """One of the three kernels, with any library's arrays x, w and y."""
    x, w, y = arrays
    keywords |= {"stride": case.stride, "padding": case.padding, "dilation": case.dilation, "groups": case.groups}
    if kernel == "fprop":
        return cg.conv(x, w, **keywords)
    if kernel == "dgrad":
        return cg.conv_backward_data(y, w, case.x, **keywords)
    return cg.conv_backward_filter(x, y, case.w, **keywords)


def _axes(order, rank):
    """The numbers of the axes of NCX or OIX, in the order in which they lie in memory."""
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
    """The call on the GPU as a function, its result, and the result's order in memory."""
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
    return forced.task_of(call)


def differences(row):
    """The faults in the results of a row on the GPU, in words, one after another."""
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


class Worker:
    """The requests that a process with the GPU answers."""

    def __init__(self):
        import cupy

        # An allocation for each array: compute-sanitizer can then see accesses beyond an array.
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
        """The faults of a row, and the variants that it launched."""
        row = self._rows(group)[name]
        with forced.taking(row.family, row.choice), watched() as launched:
            wrong = list(differences(row))
        if not is_taken(row, launched):
            wrong.append("no kernel of this family with this choice was launched")
        return {"wrong": wrong, "launched": sorted({name_of(*one) for one in launched})}
