"""A kernel of one problem, planned as for a GPU and run on the CPU."""

from math import prod

import numpy as np
from gpus import H200
from operations import dtype_of
from sim.executor import POISON, execute

from convgrad_cy import dtypes
from convgrad_cy.gpu import module
from convgrad_cy.gpu.plan import task_of
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem, lift

OPERATIONS = {"fprop": FPROP, "dgrad": DGRAD, "wgrad": WGRAD}
#: Layouts of x and y, and of w: the order of the axes of NCX and OIX in memory, the spatial ones as X.
CHANNELS_FIRST = ("NCX", "OIX")
CHANNELS_LAST = ("NXC", "OXI")
FORMATS = (CHANNELS_FIRST, CHANNELS_LAST, ("NXC", "XIO"))


def conv_problem(problem):
    """The package's problem for a problem of problems.txt."""
    return ConvProblem(
        batch=problem.batch,
        groups=problem.groups,
        x_channels=problem.x_channels // problem.groups,
        y_channels=problem.y_channels // problem.groups,
        x=lift(problem.x, 1),
        y=lift(problem.y, 1),
        kernel=lift(problem.kernel, 1),
        stride=lift(problem.stride, 1),
        dilation=lift(problem.dilation, 1),
        pad_begin=lift([begin for begin, _ in problem.padding], 0),
    )


def _order_in_memory(order, letters, axes):
    """The numbers of the axes of a tensor with these letters, in the order in which they lie in memory."""
    return [axis for letter in order for axis in (range(2, axes) if letter == "X" else [letters.index(letter)])]


def _placed(tensor, order, letters, layout):
    """A tensor of equal elements, with its axes in this order in memory and then in ``layout``."""
    axes = _order_in_memory(order, letters, tensor.ndim)
    return layout(np.ascontiguousarray(tensor.transpose(axes))).transpose(np.argsort(axes))


def _imagined(shape, dtype, order, letters):
    """An array of this shape and layout without memory for its elements."""
    axes = _order_in_memory(order, letters, len(shape))
    sizes = [shape[axis] for axis in axes]
    strides = [dtype.itemsize * prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return np.lib.stride_tricks.as_strided(np.zeros(1, dtype), sizes, strides).transpose(np.argsort(axes))


def _six_axes(problem, tensors):
    """The views of x, w and y that ``gpu.plan.task_of`` and the kernels take."""
    p = conv_problem(problem)
    shapes = (
        (p.batch, p.groups, p.x_channels, *p.x),
        (p.groups, p.y_channels, p.x_channels, *p.kernel),
        (p.batch, p.groups, p.y_channels, *p.y),
    )
    return [tensor.reshape(shape) for tensor, shape in zip(tensors, shapes, strict=True)]


def _task(kernel, problem, tensors, precision, device):
    """The task, and the views of x, w and y."""
    views = _six_axes(problem, tensors)
    described = [(view.shape, view.strides, view.__array_interface__["data"][0]) for view in views]
    dtype = dtypes.lookup(views[0].dtype)
    return task_of(OPERATIONS[kernel], conv_problem(problem), dtype, precision, described, device), views


def task_without_memory(kernel, problem, dtype, precision="high", formats=CHANNELS_FIRST, device=H200):
    """The task of tensors without memory, for plans of any size."""
    data, filter = formats
    dtype = dtype_of(dtype)
    tensors = (
        _imagined(problem.x_shape, dtype, data, "NC"),
        _imagined(problem.w_shape, dtype, filter, "OI"),
        _imagined(problem.y_shape, dtype, data, "NC"),
    )
    return _task(kernel, problem, tensors, precision, device)[0]


class Case:
    """One kernel of one problem, its tensors in memory, and its task."""

    def __init__(
        self, kernel, problem, tensors, *, precision="high", formats=CHANNELS_FIRST, layout=np.array, device=H200
    ):
        data, filter = formats
        x, w, y = (
            _placed(tensor, order, letters, layout)
            for tensor, order, letters in zip(tensors, (data, filter, data), ("NC", "OI", "NC"), strict=True)
        )
        self.result = {"fprop": y, "dgrad": x, "wgrad": w}[kernel]
        self.task, (x, w, y) = _task(kernel, problem, (x, w, y), precision, device)
        self.operands = (y, w.swapaxes(1, 2), x) if kernel == "dgrad" else (x, w, y)

    def run(self, plan, schedule="ascending", seed=0, text=module.text):
        """The result of a plan. The plan has to write each element of it."""
        self.result[...] = np.frombuffer(bytes([POISON[schedule]]) * self.result.itemsize, self.result.dtype)
        execute(plan, self.operands, self.task.written, schedule, seed, text)
        return self.result.copy()
