"""``explain`` of arrays, of functions with two results, and in a notebook."""

import numpy as np
import pytest
from operations import PAIRS
from problems import PROBLEMS

import convgrad_cy as cg
from convgrad_cy import calls, cpu
from convgrad_cy.cpu.plan.job import Job

SAME = PROBLEMS["2d_same"]


def arrays_of(problem, parts, dtype="float32"):
    shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
    return [np.ones(shapes[part], dtype) for part in parts]


def channels_last(array):
    """An array with the shape and values of another, whose channels are adjacent in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


@pytest.mark.parametrize("dtype", ("float32", "float64", "int32"))
def test_contiguous_arrays_are_as_their_shapes(dtype):
    arrays = arrays_of(SAME, "xw", dtype)
    found = cg.explain(cg.conv, arrays, **SAME.keywords)
    assert found == cg.explain("conv", [array.shape for array in arrays], dtype, **SAME.keywords)
    assert found.dtype == dtype


@pytest.mark.parametrize("layout", (channels_last, np.asfortranarray, lambda array: array[:, ::-1]))
def test_strides_are_those_of_the_call(layout, monkeypatch):
    """The plan must be the one of a call with these arrays, which depends on their strides."""
    x, w = map(layout, arrays_of(SAME, "xw"))
    tasks, task_of = [], cpu.task_of
    monkeypatch.setattr(cpu, "task_of", lambda *given: tasks.append(task_of(*given)) or tasks[-1])
    jobs, ready = [], Job.ready
    monkeypatch.setattr(Job, "ready", lambda job, numbers: jobs.append(job) or ready(job, numbers))
    calls.forget()
    cg.conv(x, w, **SAME.keywords)
    called = len(tasks)
    found = cg.explain(cg.conv, [x, w], **SAME.keywords)
    calls.forget()
    assert called and len(tasks) == called + 1
    strides = [[tensor.strides for tensor in task.tensors[:2]] for task in (tasks[0], tasks[-1])]
    assert strides[0] == strides[1]
    assert found.details["kernel"] == jobs[0].kernel


def test_no_memory_is_touched():
    """``explain`` must touch no memory: strides of zero make arrays larger than any machine.

    It must keep the strides.
    """
    x = np.broadcast_to(np.float32(1), (2**20, 64, 1024, 1024))
    found = cg.explain("conv_backward_filter", [x, x], w_shape=(64, 64, 1, 1))
    assert found.shape == (64, 64, 1, 1) and found.family


@pytest.mark.parametrize(
    "change",
    (lambda a: a.astype(">f4"), lambda a: np.frombuffer(b"." + a.tobytes(), np.uint8)[1:].view("f4").reshape(a.shape)),
)
def test_arrays_that_are_copied(change):
    x, w = arrays_of(SAME, "xw")
    assert cg.explain("conv", [change(x), w], **SAME.keywords) == cg.explain("conv", [x, w], **SAME.keywords)


def test_types():
    x, w = arrays_of(SAME, "xw", "float64")
    shapes = [x.shape, w.shape]

    def dtype_of(*given, **keywords):
        return cg.explain("conv", *given, **SAME.keywords, **keywords).dtype

    assert dtype_of(shapes) == "float32"
    assert dtype_of([x, w.shape]) == dtype_of([x.shape, w]) == "float64"
    assert dtype_of([x, w], "float16") == dtype_of([x, w], dtype="float16") == "float16"
    assert dtype_of(shapes, np.float64) == dtype_of(shapes, np.dtype(">f8")) == "float64"
    assert dtype_of(shapes, "bfloat16") == "bfloat16"
    assert dtype_of([np.array(x.shape), list(w.shape)]) == "float32", "an array of one axis is a shape"


def test_pytorch():
    torch = pytest.importorskip("torch")
    x, w = torch.ones(2, 64, 30, 30), torch.ones(64, 64, 3, 3)
    last = x.to(memory_format=torch.channels_last)
    assert cg.explain("conv", [x, w]) == cg.explain("conv", [x.numpy(), w.numpy()])
    assert cg.explain("conv", [last, w]) == cg.explain("conv", [last.numpy(), w.numpy()])
    assert cg.explain("conv", [x.bfloat16(), w.bfloat16()]).dtype == "bfloat16"
    assert cg.explain("conv", [x.shape, w.shape], torch.float64).dtype == "float64"
    weight = torch.nn.Parameter(w)  # no value is asked for, so a gradient may be required
    assert cg.explain("conv", [x, weight]) == cg.explain("conv", [x, w])
    assert cg.explain("conv", [x.to("meta"), w.to("meta")]) == cg.explain("conv", [x, w])


def test_jax():
    jax = pytest.importorskip("jax")
    x, w = jax.numpy.ones((2, 64, 30, 30)), jax.numpy.ones((64, 64, 3, 3))
    assert cg.explain("conv", [x, w]) == cg.explain("conv", [x.shape, w.shape])
    assert cg.explain("conv", [x.astype("bfloat16"), w.astype("bfloat16")]).dtype == "bfloat16"
    assert cg.explain("conv", [jax.ShapeDtypeStruct(x.shape, "float16"), w.shape]).dtype == "float16"


class OnGpu:
    """An array with CuPy's attributes. NumPy must not ask for its elements."""

    def __init__(self, array):
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.ndim, self.itemsize = array.ndim, array.itemsize


def test_cupy():
    x, w = map(channels_last, arrays_of(SAME, "xw"))
    assert cg.explain("conv", [OnGpu(x), OnGpu(w)], **SAME.keywords) == cg.explain("conv", [x, w], **SAME.keywords)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("problem", ("1d_groups", "2d_same", "3d_mixed_stride"))
def test_both_gradients(name, problem):
    """Each explanation must equal the one of the function for this gradient alone."""
    problem = PROBLEMS[problem]
    dy, x, w = arrays_of(problem, PAIRS[name])
    found = cg.explain(getattr(cg, name), [dy, x, w], **problem.keywords)
    dx, dw = found
    assert (dx, dw) == (found.dx, found.dw)
    asked = {} if name == "conv_transpose_backward" else {"x_shape": x.shape}
    assert dx == cg.explain(f"{name}_data", [dy, w], **problem.keywords, **asked)
    assert dw == cg.explain(f"{name}_filter", [x, dy], w_shape=w.shape, **problem.keywords)
    assert str(found) == f"{dx}\n{dw}"
    assert (dx.shape, dw.shape) == (x.shape, w.shape)


def test_keywords_of_a_transposed_layer():
    shapes, layer = [(2, 3, 12), (2, 4, 5), (4, 3, 4)], {"stride": 2, "output_padding": 0}
    assert cg.explain("conv_transpose_backward", shapes, **layer).dx.shape == (2, 4, 5)
    assert cg.explain("conv_transpose_backward_data", shapes[::2], **layer).shape == (2, 4, 5)
    with pytest.raises(ValueError, match=r"^output_padding must agree with dy\.shape\[2\] = 12"):
        cg.explain("conv_transpose_backward", shapes, stride=2, output_padding=1)


def test_empty_gradients():
    dx, dw = cg.explain("conv_backward", [(0, 4, 7), (0, 2, 9), (4, 2, 3)])
    assert dx.family is None and dx.shape == (0, 2, 9) and dw.shape == (4, 2, 3)


class Printer:
    """IPython's printer, with the one method that an explanation needs."""

    def __init__(self):
        self.texts = []

    def text(self, text):
        self.texts.append(text)


@pytest.mark.parametrize(("name", "parts"), [("conv", "xw"), *PAIRS.items()])
def test_in_a_notebook(name, parts):
    """The notebook must show the report, not the tuple. IPython's own printer must, too, if it is installed."""
    found = cg.explain(name, arrays_of(SAME, parts), **SAME.keywords)
    printer = Printer()
    found._repr_pretty_(printer, False)
    assert printer.texts == [str(found)] and len(str(found).splitlines()) > 5


def test_in_ipython():
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    found = cg.explain("conv", arrays_of(SAME, "xw"), **SAME.keywords)
    assert pretty(found) == str(found)
