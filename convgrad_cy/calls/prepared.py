"""What is kept of a call that is legal: how to run it on any arrays that lie in memory like its own.

On a CPU each part is computed by itself, each from within the next one, so that all memory of all parts is there before
anything is written. On a GPU all parts are one piece of work.
"""

from functools import partial

import numpy as np

from .. import cpu
from .._repeat import TooLittleMemory, are_apart, call_key, new_array
from ..arrays import CUPY, NUMPY, is_addressable, reach
from ..dtypes import lookup
from ..problem import DGRAD, FPROP, WGRAD

_NO_ARRAY = np.empty(0)


def part_of(function, geometry):
    """The operation, the geometry, and the places of x, w and y among the part's two inputs and its result."""
    names = function.names
    places = [names.index(name) if name in names else 2 for name in geometry.parts]
    return (DGRAD, WGRAD, FPROP)[places.index(2)], geometry, places


def tensors_of(geometry, places, seen):
    """The six-dimensional views of x, w and y, which have these places among some arrays."""
    views = zip(places, geometry.views, strict=True)
    return [seen[place].transpose(order).reshape(shape) for place, (order, shape) in views]


def cpu_arguments(function, geometry, arrays):
    """The arguments of ``cpu.prepare`` and ``cpu.task_of`` for a part, on arrays like its two inputs and its result."""
    operation, geometry, places = part_of(function, geometry)
    tensors = tensors_of(geometry, places, arrays)
    return operation, geometry.problem, geometry.dtype, geometry.algorithm, places, tensors


def prepare(function, geometry, arrays, threads=None):
    """The work of a part on a CPU, on arrays like its two inputs and its result, which is not empty.

    ``threads``: the number of the call, or None for the one here and now.
    """
    return cpu.prepare(*cpu_arguments(function, geometry, arrays), threads)


def too_little(function, shape, dtype, error):
    """The exception for a part that found no memory, in the words of an ``error``."""
    asked, said = f"a result of shape {shape} and dtype {lookup(dtype).name}", str(error)
    return TooLittleMemory(f"{function.name} needs more memory than there is for {asked}{said and f': {said}'}")


def addressable(library, array):
    """An array that kernels can read: this one, or a copy."""
    return array if is_addressable(library.seen(array)) else library.copy(array)


def _nothing():
    """What a part does before it writes into the caller's array, so that all its memory is there by then."""


class One:
    """A part on a CPU, which is a whole call where there is no other.

    ``first`` and ``second`` are the places of its two arrays among the call's.
    """

    __slots__ = ("copied", "first", "function", "second", "shape", "work")

    def __init__(self, part, geometry, arrays, target, threads):
        self.function, self.first, self.second = part[:3]
        first, second = arrays[self.first], arrays[self.second]
        self.shape, self.work = geometry.shape, None
        self.copied = not (is_addressable(first) and is_addressable(second))
        if 0 in self.shape:
            return
        try:
            if self.copied:
                first, second = addressable(NUMPY, first), addressable(NUMPY, second)
            if target is None:
                target = new_array(self.shape, first.dtype)
            self.work = prepare(self.function, geometry, (first, second, target), threads)
        except TooLittleMemory:  # it says of which
            raise
        except MemoryError as error:
            raise too_little(self.function, self.shape, first.dtype, error) from error

    @property
    def shapes(self):
        return (self.shape,)

    def are_apart(self, arrays, outs):
        """Whether each of ``outs`` is clearly somewhere else than all before it."""
        return outs[0] is None or are_apart(outs[0], *arrays)

    def run(self, first, second, out, before=None, empty=new_array):
        """The result, in ``out`` if that is an array.

        ``before`` is called when all memory of this part is there and nothing is written yet.
        """
        try:
            if self.copied:  # first, since the result's byte order is the copy's
                first, second = addressable(NUMPY, first), addressable(NUMPY, second)
            if out is None:
                out = empty(self.shape, first.dtype, first)
            elif before is None:
                before = _nothing
            if self.work is None:
                if before is not None:
                    before()
            elif before is None:
                self.work.run(first, second, out)
            else:
                self.work.run(first, second, out, before)
            return out
        except TooLittleMemory:  # it says of which
            raise
        except MemoryError as error:
            raise too_little(self.function, self.shape, first.dtype, error) from error


class Nested:
    """A call of several parts on a CPU, each computed from within the next one."""

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts

    @property
    def shapes(self):
        return [part.shape for part in self.parts]

    def are_apart(self, arrays, outs):
        arrays = list(arrays)
        for out in outs:
            if out is not None:
                for i in range(0, len(arrays), 2):
                    if not are_apart(out, arrays[i], arrays[i - 1]):
                        return False
                arrays.append(out)
        return True

    def results(self, arrays, outs, empty):
        results = [None] * len(outs)

        def compute(i):
            part = self.parts[i]
            before = partial(compute, i - 1) if i else None
            results[i] = part.run(arrays[part.first], arrays[part.second], outs[i], before, empty)

        compute(len(outs) - 1)
        return results


def on_cpu(parts, geometries, arrays, targets, threads):
    """A call on arrays of NumPy; each of ``targets`` takes a result, or is None for a new one."""
    each = [*zip(parts, geometries, targets, strict=True)]
    ones = [One(part, geometry, arrays, target, threads) for part, geometry, target in reversed(each)][::-1]
    return ones[0] if len(ones) == 1 else Nested(ones)


class OnGpu:
    """A call on a GPU."""

    __slots__ = ("copied", "reaches", "shapes", "work")

    def __init__(self, shapes, copied, work, reaches):
        self.shapes, self.copied, self.work, self.reaches = shapes, copied, work, reaches

    def are_apart(self, arrays, outs):
        return are_apart_on_gpu(self.reaches, (*arrays, *outs), len(arrays))

    def run(self, first, second, out, before, empty):
        """What ``results`` does, of a call with one."""
        if out is None:
            out = CUPY.empty(self.shapes[0], first.dtype, first)
        if self.copied:
            first, second = addressable(CUPY, first), addressable(CUPY, second)
        if self.work is not None:
            self.work.run(first, second, out)
        return out

    def results(self, arrays, outs, empty):
        first = arrays[0]
        targets = [
            CUPY.empty(shape, first.dtype, first) if out is None else out
            for shape, out in zip(self.shapes, outs, strict=True)
        ]
        if self.copied:
            arrays = [addressable(CUPY, array) for array in arrays]
        if self.work is not None:
            self.work.run(*arrays, *targets)
        return targets


def on_gpu(parts, geometries, arrays, targets):
    """A call on arrays of CuPy; each of ``targets`` takes a result, or is None for a new one."""
    from .. import gpu

    first, shapes = arrays[0], [geometry.shape for geometry in geometries]
    targets = [
        CUPY.empty(shape, first.dtype, first) if target is None else target
        for shape, target in zip(shapes, targets, strict=True)
    ]
    reaches = [reach(array) for array in (*arrays, *targets)]
    read = [addressable(CUPY, array) for array in arrays]
    copied = any(one is not other for one, other in zip(read, arrays, strict=True))
    operands = [CUPY.seen(array) for array in (*read, *targets)]
    viewed = []
    for i, (part, geometry) in enumerate(zip(parts, geometries, strict=True)):
        if 0 not in geometry.shape:
            operation, _, places = part_of(part.function, geometry)
            numbers = (part.first, part.second, len(arrays) + i)
            places = [numbers[place] for place in places]
            viewed.append((operation, geometry, places, tensors_of(geometry, places, operands)))
    work = gpu.prepare(viewed, len(operands), first.data.device_id) if viewed else None
    return OnGpu(shapes, copied, work, reaches)


def gpu_key(function, arrays, asked, keywords):
    """All that a call of CuPy's arrays depends on, or None for one that has to be checked each time.

    The arrays for the results are among them, None for a new one.
    """
    words = call_key(function, _NO_ARRAY, _NO_ARRAY, None, asked, keywords, 0)
    if words is None:
        return None
    key, kind = [words], type(arrays[0])
    for array in arrays:
        if type(array) is kind:
            data = array.data
            key.append((array.dtype, array.shape, array.strides, data.ptr % 16, data.device_id))
        elif array is None:
            key.append(None)
        else:
            return None
    return tuple(key)


def are_apart_on_gpu(reaches, arrays, inputs):
    """What ``are_apart`` is for NumPy arrays: whether each result is clearly somewhere else than all before it.

    The results come after so many ``inputs``; None stands for one that is new, and so is nowhere else.
    """
    for i in range(inputs, len(arrays)):
        result = arrays[i]
        if result is not None:
            address, (before, behind) = result.data.ptr, reaches[i]
            begin, end = address - before, address + behind
            for other, (before, behind) in zip(arrays[:i], reaches, strict=False):
                if other is not None:
                    address = other.data.ptr
                    if begin < address + behind and address - before < end:
                        return False
    return True
