"""The prepared form of a legal call: it runs on any arrays with the memory layout of the first ones.

On a CPU each part is one piece of work, and each runs from within the next one. So all memory of all parts is allocated
before anything is written. On a GPU all parts are one piece of work.
"""

from functools import partial

import numpy as np

from .. import cpu
from .._repeat import TooLittleMemory, are_apart, call_key, new_array
from ..arrays import CUPY, NUMPY, is_addressable, reach
from ..cpu.parts import ready as ready_part
from ..dtypes import lookup
from ..problem import DGRAD, FPROP, WGRAD

_NO_ARRAY = np.empty(0)


def part_of(function, geometry):
    """The operation of a part, its geometry, and the indices of x, w and y among the two inputs and the result."""
    names = function.names
    places = [names.index(name) if name in names else 2 for name in geometry.parts]
    return (DGRAD, WGRAD, FPROP)[places.index(2)], geometry, places


def tensors_of(geometry, places, seen):
    """The six-dimensional views of x, w and y. ``places`` are their indices in ``seen``."""
    views = zip(places, geometry.views, strict=True)
    return [seen[place].transpose(order).reshape(shape) for place, (order, shape) in views]


def cpu_arguments(function, geometry, arrays):
    """The arguments of ``cpu.prepare`` and ``cpu.task_of`` for a part. ``arrays`` are like its inputs and result."""
    operation, geometry, places = part_of(function, geometry)
    each = zip(places, tensors_of(geometry, places, arrays), strict=True)
    operands = [cpu.Operand(place, 0, arrays[place]).with_view(tensor) for place, tensor in each]
    return operation, geometry.problem, geometry.dtype, geometry.algorithm, operands


def prepare(function, geometry, arrays, threads=None):
    """The work of a part on a CPU. ``arrays`` are like its two inputs and its result; the result is not empty.

    ``threads`` is the number of threads of the call; None stands for the current setting.
    """
    return cpu.prepare(*cpu_arguments(function, geometry, arrays), threads)


def gpu_task(function, geometry, arrays, device):
    """The task of a part on a ``gpu.Device``. ``arrays`` are like its inputs and its result, at aligned addresses."""
    from .. import gpu

    operation, geometry, places = part_of(function, geometry)
    views = [(tensor.shape, tensor.strides, 0) for tensor in tensors_of(geometry, places, arrays)]
    return gpu.task_of(operation, geometry.problem, geometry.dtype, geometry.precision, views, device)


def too_little(function, shape, dtype, error):
    """The exception for a part that found no memory; the message ends with the text of ``error``."""
    asked, said = f"a result of shape {shape} and dtype {lookup(dtype).name}", str(error)
    return TooLittleMemory(f"{function.name} needs more memory than there is for {asked}{said and f': {said}'}")


def addressable(library, array):
    """The array itself if kernels can read it, else a copy that they can read."""
    return array if is_addressable(library.seen(array)) else library.copy(array)


def run_part(function, geometry, whole, first, second):
    """The result of a part of a call on NumPy arrays, with the bits that one call with the problem ``whole`` has.

    The algorithm is "direct", and the result has elements and is no gradient of a filter.
    """
    first, second = addressable(NUMPY, first), addressable(NUMPY, second)
    out = new_array(geometry.shape, first.dtype)
    task = cpu.task_of(*cpu_arguments(function, geometry, (first, second, out)))
    ready_part(task, whole).run(first, second, out)
    return out


def _nothing():
    """A ``before`` that does nothing. With it, a part allocates all its memory before it writes into ``out``."""


class One:
    """A part on a CPU. It is the whole call if the call has one result.

    ``first`` and ``second`` are the indices of its two arrays among the call's.
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
        except TooLittleMemory:  # the message names the part already
            raise
        except MemoryError as error:
            raise too_little(self.function, self.shape, first.dtype, error) from error

    @property
    def shapes(self):
        return (self.shape,)

    def are_apart(self, arrays, outs):
        """Whether no array of ``outs`` may share memory with an array before it."""
        return outs[0] is None or are_apart(outs[0], *arrays)

    def run(self, first, second, out, before=None, empty=new_array):
        """Compute the result and return it, in ``out`` if that is an array.

        ``before`` is called when all memory of this part is allocated and nothing is written yet.
        """
        try:
            if self.copied:  # before ``out`` is made, as a new result has the copy's byte order
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
        except TooLittleMemory:  # the message names the part already
            raise
        except MemoryError as error:
            raise too_little(self.function, self.shape, first.dtype, error) from error


class Nested:
    """A call of several parts on a CPU. Each part runs from within the next one."""

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
    """The prepared form of a call on NumPy arrays. Each of ``targets`` takes a result, or is None for a new one."""
    each = [*zip(parts, geometries, targets, strict=True)]
    ones = [One(part, geometry, arrays, target, threads) for part, geometry, target in reversed(each)][::-1]
    return ones[0] if len(ones) == 1 else Nested(ones)


def _on_gpu(empty):
    """The function that makes a result on a GPU. The caller's default makes one on the CPU."""
    return CUPY.empty if empty is new_array else empty


class OnGpu:
    """The prepared form of a call on a GPU."""

    __slots__ = ("copied", "reaches", "shapes", "work")

    def __init__(self, shapes, copied, work, reaches):
        self.shapes, self.copied, self.work, self.reaches = shapes, copied, work, reaches

    def are_apart(self, arrays, outs):
        return are_apart_on_gpu(self.reaches, (*arrays, *outs), len(arrays))

    def run(self, first, second, out, before, empty):
        """``results`` for a call with one result."""
        if out is None:
            out = _on_gpu(empty)(self.shapes[0], first.dtype, first)
        if self.copied:
            first, second = addressable(CUPY, first), addressable(CUPY, second)
        if self.work is not None:
            self.work.run(first, second, out)
        return out

    def results(self, arrays, outs, empty):
        first, made = arrays[0], _on_gpu(empty)
        targets = [
            made(shape, first.dtype, first) if out is None else out
            for shape, out in zip(self.shapes, outs, strict=True)
        ]
        if self.copied:
            arrays = [addressable(CUPY, array) for array in arrays]
        if self.work is not None:
            self.work.run(*arrays, *targets)
        return targets


def on_gpu(parts, geometries, arrays, targets):
    """The prepared form of a call on CuPy arrays. Each of ``targets`` takes a result, or is None for a new one."""
    first, shapes = arrays[0], [geometry.shape for geometry in geometries]
    targets = [
        CUPY.empty(shape, first.dtype, first) if target is None else target
        for shape, target in zip(shapes, targets, strict=True)
    ]
    reaches = [reach(array) for array in (*arrays, *targets)]
    read = [addressable(CUPY, array) for array in arrays]
    copied = any(one is not other for one, other in zip(read, arrays, strict=True))
    operands = [CUPY.seen(array) for array in (*read, *targets)]
    return OnGpu(shapes, copied, gpu_work(parts, geometries, operands, first.data.device_id), reaches)


def gpu_work(parts, geometries, operands, device):
    """The work of a call on a GPU, or None if all its results are empty.

    ``operands`` are NumPy views of the call's arrays, and then of the result of each part. Nobody reads their memory.
    """
    from .. import gpu

    viewed, inputs = [], len(operands) - len(parts)
    for i, (part, geometry) in enumerate(zip(parts, geometries, strict=True)):
        if 0 not in geometry.shape:
            operation, _, places = part_of(part.function, geometry)
            numbers = (part.first, part.second, inputs + i)
            places = [numbers[place] for place in places]
            viewed.append((operation, geometry, places, tensors_of(geometry, places, operands)))
    return gpu.prepare(viewed, len(operands), device) if viewed else None


def gpu_key(function, arrays, asked, keywords):
    """The key of a call on CuPy arrays, or None for a call that has to be checked each time.

    ``arrays`` are the inputs, and then an array for each result, or None for a new one.
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
    """Whether no result on a GPU may share memory with an array before it, like ``are_apart`` for NumPy arrays.

    The results are ``arrays[inputs:]``. None stands for a new array, which shares no memory.
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
