"""Times of ours and of cuDNN on one GPU: equal memory, replays of CUDA graphs in turn, and checked results.

Needs CuPy and PyTorch, which gives access to cuDNN.
"""

import gc
import time
from statistics import median

import cupy
import numpy as np
import torch

import convgrad_cy as cg
from convgrad_cy import calls, gpu

from . import exact
from .launches import watched

TORCH = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "int32": torch.int32,
}
#: Greatest error relative to the greatest element, by type, and for float32 by precision.
BOUNDS = {"float64": 1e-13, "float16": 2e-3, "bfloat16": 6e-3, "ieee": 5e-6, "high": 5e-6, "medium": 1e-5, "int32": 0}
#: Inputs rotate through at least this many bytes, three times the L2 cache, but through no more sets than this.
ROTATED, MOST_SETS = 180 << 20, 12
#: Samples of each side, two in a round of ours, cuDNN, cuDNN, ours; and the least time of one sample.
ROUNDS, SAMPLE_SECONDS = 16, 4e-4
EAGER_CALLS = 20


def as_cupy(tensor):
    """The tensor's memory as an array of CuPy, with its strides, also for bfloat16."""
    memory = cupy.cuda.UnownedMemory(tensor.data_ptr(), tensor.untyped_storage().nbytes(), tensor)
    dtype = np.dtype(str(tensor.dtype).removeprefix("torch.")) if tensor.dtype != torch.bfloat16 else _bfloat16()
    strides = tuple(step * tensor.element_size() for step in tensor.stride())
    return cupy.ndarray(tuple(tensor.shape), dtype, cupy.cuda.MemoryPointer(memory, 0), strides)


def _bfloat16():
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _draw(shape, case):
    """Normally distributed numbers, or integers; a tensor in the layout of the case."""
    if case.dtype == "int32":
        tensor = torch.randint(-9, 10, shape, dtype=torch.int32, device="cuda")
    else:
        tensor = torch.randn(shape, device="cuda", dtype=torch.float32).to(TORCH[case.dtype])
    if not case.channels_last:
        return tensor
    if len(shape) == 3:  # PyTorch has no such format for one axis
        return tensor.movedim(1, -1).contiguous().movedim(-1, 1)
    return tensor.contiguous(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)


class Side:
    """One of the two: a call on each set of operands, and its graph."""

    def __init__(self, call, sets, launch):
        self.call, self.sets, self.launch = call, sets, launch
        self.samples = []

    def sample(self, stream, replays):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(stream)
        for _ in range(replays):
            self.launch()
        end.record(stream)
        self.samples.append((start, end, replays * len(self.sets)))

    def microseconds(self):
        """The median time of a call."""
        return median(start.elapsed_time(end) * 1e3 / calls for start, end, calls in self.samples)

    def eager_microseconds(self):
        """Time of a call without a graph, as a program sees it: the longer one of host and GPU."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(EAGER_CALLS):
            self.call(self.sets[i % len(self.sets)])
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / EAGER_CALLS * 1e6


class Measurement:
    """One row on one GPU."""

    def __init__(self, row):
        self.row, self.case = row, row.case
        case = row.case
        count = min(MOST_SETS, max(1, -(-ROTATED // case.bytes)))
        self.sets = [self._operands() for _ in range(count)]
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.torch_stream = torch.cuda.ExternalStream(self.stream.ptr)

    def _operands(self):
        case, kernel = self.case, self.row.kernel
        x, w, y = (_draw(shape, case) for shape in (case.x, case.w, case.y))
        like = {"fprop": (y,), "dgrad": (x,), "wgrad": (w,), "both": (x, w)}[kernel]
        results = tuple(map(torch.empty_like, like))
        return {
            "x": x,
            "w": w,
            "y": y,
            "results": results,
            "cupy": {name: as_cupy(tensor) for name, tensor in zip("xwy", (x, w, y), strict=True)},
            "outs": tuple(map(as_cupy, results)),
        }

    def _ours(self, operands):
        case, arrays = self.case, operands["cupy"]
        keywords = {
            "stride": case.stride,
            "padding": case.padding,
            "dilation": case.dilation,
            "groups": case.groups,
            "precision": self.row.group.precision,
        }
        outs = operands["outs"]
        if self.row.kernel == "both":
            return cg.conv_backward(arrays["y"], arrays["x"], arrays["w"], **keywords, out=outs)
        keywords["out"] = outs[0]
        if self.row.kernel == "fprop":
            return cg.conv(arrays["x"], arrays["w"], **keywords)
        if self.row.kernel == "dgrad":
            return cg.conv_backward_data(arrays["y"], arrays["w"], case.x, **keywords)
        return cg.conv_backward_filter(arrays["x"], arrays["y"], case.w, **keywords)

    def _cudnn(self, operands):
        return exact.convolved(
            operands["x"], operands["w"], operands["y"], self.case, self.case.groups, self.row.kernel
        )

    def _capture_ours(self):
        with self.stream:
            for operands in self.sets:
                self._ours(operands)
            self.stream.synchronize()
            self.stream.begin_capture()
            for operands in self.sets:
                self._ours(operands)
            graph = self.stream.end_capture()

        def call(operands):
            with self.stream:
                self._ours(operands)

        return Side(call, self.sets, lambda: graph.launch(self.stream))

    def _capture_cudnn(self):
        with torch.cuda.stream(self.torch_stream):
            for operands in self.sets:
                self._cudnn(operands)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for operands in self.sets:
                self._cudnn(operands)

        def call(operands):
            with torch.cuda.stream(self.torch_stream):
                self._cudnn(operands)

        def launch():
            with torch.cuda.stream(self.torch_stream):
                graph.replay()

        return Side(call, self.sets, launch)

    def checked(self):
        """The error of our result, and whether a second call has equal bits. Results are poisoned first."""
        found = []
        for _ in range(2):
            results = self.sets[0]["results"]
            for result in results:
                result.fill_(77 if self.case.dtype == "int32" else float("nan"))
            torch.cuda.synchronize()
            with self.stream:
                self._ours(self.sets[0])
            self.stream.synchronize()
            found.append([result.clone() for result in results])
        same = all(
            torch.equal(*(result.contiguous().view(torch.uint8) for result in pair))
            for pair in zip(*found, strict=True)
        )
        return {"error": self._error(found[0]), "bitwise": same}

    def _error(self, results):
        """The greatest error of the results."""
        kernels = ("dgrad", "wgrad") if self.row.kernel == "both" else (self.row.kernel,)
        operands = [self.sets[0][name] for name in "xwy"]
        return max(
            exact.error(self.case, kernel, *operands, result) for kernel, result in zip(kernels, results, strict=True)
        )

    def _deterministic(self):
        """cuDNN's graph of deterministic algorithms."""
        torch.backends.cudnn.deterministic = True
        try:
            return self._capture_cudnn()
        finally:
            torch.backends.cudnn.deterministic = False

    def run(self, deterministic=False):
        """All numbers of the row. ``deterministic`` also times cuDNN's deterministic algorithms."""
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.benchmark_limit = 0  # try all algorithms, not only the first ten
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        with watched():
            found = self.checked()
        ours = self._capture_ours()
        sides = {"ours": ours}
        torch.backends.cudnn.allow_tf32 = self.row.group.tf32
        try:
            if self.case.dtype == "int32":
                raise NotImplementedError("cuDNN has no convolution of integers")
            sides["cudnn"] = self._capture_cudnn()
            found["cudnn_error"] = self._error(self._cudnn(self.sets[0]))
            if deterministic:
                sides["cudnn_deterministic"] = self._deterministic()
        except (RuntimeError, NotImplementedError) as error:
            found["cudnn_refuses"] = str(error).splitlines()[0]
            torch.cuda.synchronize()
        replays = []
        for side in sides.values():
            side.sample(self.torch_stream, 3)
            torch.cuda.synchronize()
            seconds = side.microseconds() * 1e-6 * len(self.sets)
            replays.append(max(1, int(SAMPLE_SECONDS / seconds)))
            side.samples.clear()
        turns = list(zip(sides.values(), replays, strict=True))
        for _ in range(ROUNDS):
            for side, count in (*turns, *turns[::-1]):
                side.sample(self.torch_stream, count)
        torch.cuda.synchronize()
        for name, side in sides.items():
            found[f"{name}_us"] = side.microseconds()
            found[f"{name}_eager_us"] = side.eager_microseconds()
        return {**found, "sets": len(self.sets), "samples": 2 * ROUNDS}


def release():
    """Free the memory of a row, whose graphs nobody keeps."""
    calls.forget()
    gc.collect()
    gpu.release_captured()
    cupy.get_default_memory_pool().free_all_blocks()
    torch.cuda.empty_cache()


def is_right(row, found):
    bound = BOUNDS[row.group.precision if row.case.dtype == "float32" else row.case.dtype]
    return found["error"] <= bound and found["bitwise"]
