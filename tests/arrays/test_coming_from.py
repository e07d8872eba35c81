"""The table "Coming from another library" of docs/arrays.md: both calls of a row give the same result.

PyTorch, JAX and SciPy are called directly. The shims stand for the other libraries; they are compared with recordings
of the real packages elsewhere. ``tf.nn`` is written here with the operations that it calls.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy.shims import cupy_cudnn, mindspore, onednn, tensorflow

PAGE = Path(__file__).parents[2] / "docs" / "arrays.md"
MARKS = {"torch": pytest.mark.torch, "jax": pytest.mark.jax}


def rows():
    """(library, their call, our call) of the table."""
    if not PAGE.exists():  # tests of a wheel have no documents
        return []
    section = PAGE.read_text(encoding="utf-8").split("## Coming from another library")[1].split("\n## ")[0]
    found = re.findall(r"^\| ([\w ]+) \| `([^`]+)` \| `([^`]+)` \|$", section, re.MULTILINE)
    return [pytest.param(*row, marks=MARKS.get(row[0], ())) for row in found]


def conv2d(input, filters, strides, padding):
    return tensorflow.raw_ops.Conv2D(input=input, filter=filters, strides=[1, strides, strides, 1], padding=padding)


def conv2d_transpose(input, filters, output_shape, strides, padding):
    return tensorflow.raw_ops.Conv2DBackpropInput(
        input_sizes=output_shape,
        filter=filters,
        out_backprop=input,
        strides=[1, strides, strides, 1],
        padding=padding,
    )


def modules(library):
    """The names of a library that its calls use."""
    if library == "torch":
        torch = pytest.importorskip("torch")
        return {"torch": torch, "F": torch.nn.functional}
    if library == "jax":
        jax = pytest.importorskip("jax")
        return {"jax": jax, "lax": jax.lax}
    if library == "scipy":
        return {"signal": pytest.importorskip("scipy.signal")}
    nn = SimpleNamespace(conv2d=conv2d, conv2d_transpose=conv2d_transpose)
    return {
        "tf": SimpleNamespace(nn=nn, raw_ops=tensorflow.raw_ops),
        "ops": mindspore.ops,
        "onednn": onednn,
        "cudnn": cupy_cudnn,
    }


def arrays():
    """Integers in float32. Their sums are exact in any order."""
    random = np.random.default_rng(0)
    shapes = {"x": (2, 4, 9, 8), "w": (6, 4, 3, 3), "dy": (2, 6, 5, 4), "a": (9, 8), "b": (4, 3)}
    found = {name: random.integers(-4, 5, shape).astype(np.float32) for name, shape in shapes.items()}
    found |= {"X": found["x"].transpose(0, 2, 3, 1), "dY": found["dy"].transpose(0, 2, 3, 1)}
    found |= {"W": found["w"].transpose(2, 3, 1, 0), "out": np.empty_like(found["x"])}
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


@pytest.mark.parametrize("library, theirs, ours", rows())
def test_the_calls_of_a_row_agree(library, theirs, ours):
    namespace, given = modules(library), arrays()
    if "onv_transpose(X" in theirs:  # the inputs of its filter are the channels of X
        given["W"] = np.ascontiguousarray(given["W"][:, :, :, :5])
    tensors = (
        {name: namespace["torch"].from_numpy(array) for name, array in given.items()} if library == "torch" else given
    )
    expected = eval(theirs, namespace | tensors)
    if expected is None:  # the call writes to an argument
        expected = given["out"].copy()
    result = eval(ours, {"cg": cg} | given)
    assert result.shape == tuple(expected.shape)
    np.testing.assert_allclose(result, np.asarray(expected), rtol=1e-6, atol=1e-4)


def test_every_library_has_a_row():
    if found := rows():
        assert {row.values[0] for row in found} == {
            "torch",
            "tensorflow",
            "jax",
            "scipy",
            "mindspore",
            "onednn",
            "cupy 13",
        }
