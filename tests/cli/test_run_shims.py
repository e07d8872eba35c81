"""``python -m convgrad_cy run`` with the frameworks' operations: the result of a direct call, or one line."""

import json

import numpy as np
import pytest
from commands import assert_one_line, start, status_of
from conformance import replay

from convgrad_cy.cli.operations import OPERATIONS
from convgrad_cy.shims import mindspore, onednn
from convgrad_cy.shims.tensorflow import raw_ops

#: Attributes in JSON for one convolution with two groups.
MINDSPORE = {
    "out_channel": 6,
    "kernel_size": [3, 2],
    "pad_mode": "pad",
    "pad": [1, 0, 1, 1],
    "stride": [2, 1],
    "group": 2,
}
TENSORFLOW = {"strides": [1, 2, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 1, 1, 0, 0]}
ONEDNN = {"strides": [2, 1], "pads_begin": [1, 1], "pads_end": [0, 1], "dilations": [1, 1], "groups": 2}
TUPLES = {name: tuple(value) if isinstance(value, list) else value for name, value in MINDSPORE.items()}


def tensor(*shape):
    return replay.tensor("float32", shape, sum(shape))


# The input, the filter and the output of this convolution: channels first, and last.
X, W, Y = tensor(2, 4, 6, 5), tensor(6, 2, 3, 2), tensor(2, 6, 3, 6)
XL, WL, YL = tensor(2, 6, 5, 4), tensor(3, 2, 2, 6), tensor(2, 3, 6, 6)
#: Operation -> arrays, attributes, the attribute that may be an array, and the result of a direct call.
CALLS = {
    "mindspore.Conv2DBackpropInput": (
        {"dout": Y, "weight": W}, MINDSPORE, {"input_size": X.shape},
        lambda: mindspore.Conv2DBackpropInput(**TUPLES)(Y, W, X.shape),
    ),
    "mindspore.Conv2DTranspose": (
        {"dout": Y, "weight": W}, MINDSPORE, {"input_size": X.shape},
        lambda: mindspore.Conv2DTranspose(**TUPLES)(Y, W, X.shape),
    ),
    "tensorflow.Conv2D": (
        {"input": XL, "filter": WL}, TENSORFLOW, {},
        lambda: raw_ops.Conv2D(input=XL, filter=WL, **TENSORFLOW),
    ),
    "tensorflow.Conv2DBackpropInput": (
        {"filter": WL, "out_backprop": YL}, TENSORFLOW, {"input_sizes": XL.shape},
        lambda: raw_ops.Conv2DBackpropInput(input_sizes=XL.shape, filter=WL, out_backprop=YL, **TENSORFLOW),
    ),
    "tensorflow.Conv2DBackpropFilter": (
        {"input": XL, "out_backprop": YL}, TENSORFLOW, {"filter_sizes": WL.shape},
        lambda: raw_ops.Conv2DBackpropFilter(input=XL, filter_sizes=WL.shape, out_backprop=YL, **TENSORFLOW),
    ),
    "onednn.ConvolutionBackpropData": (
        {"output_delta": YL, "filter": WL}, ONEDNN, {"output_shape": XL.shape},
        lambda: onednn.ConvolutionBackpropData(**ONEDNN, output_shape=XL.shape)(YL, WL),
    ),
    "onednn.ConvTransposeBackpropFilters": (
        {"input_forward": YL, "output_delta": XL}, ONEDNN, {"filter_shape": (3, 2, 6, 2)},
        lambda: onednn.ConvTransposeBackpropFilters(**ONEDNN, filter_shape=(3, 2, 6, 2))(YL, XL),
    ),
    "onednn.Convolution": ({"src": XL, "weights": WL}, ONEDNN, {}, lambda: onednn.Convolution(**ONEDNN)(XL, WL)),
    "onednn.ConvolutionBackwardData": (
        {"diff_dst": YL, "weights": WL}, ONEDNN, {"dst_shape": XL.shape},
        lambda: onednn.ConvolutionBackwardData(**ONEDNN, dst_shape=XL.shape)(YL, WL),
    ),
    "onednn.ConvolutionBackwardWeights": (
        {"src": XL, "diff_dst": YL}, ONEDNN, {"weights_shape": WL.shape},
        lambda: onednn.ConvolutionBackwardWeights(**ONEDNN, weights_shape=WL.shape)(XL, YL),
    ),
    "onednn.ConvTranspose": (
        {"src": YL, "weights": WL}, ONEDNN | {"output_padding": [1, 0]}, {},
        lambda: onednn.ConvTranspose(**ONEDNN, output_padding=(1, 0))(YL, WL),
    ),
    "onednn.ConvTransposeBackwardData": (
        {"diff_dst": XL, "weights": WL}, ONEDNN, {},
        lambda: onednn.ConvTransposeBackwardData(**ONEDNN)(XL, WL),
    ),
    "onednn.ConvTransposeBackwardWeights": (
        {"src": YL, "diff_dst": XL}, ONEDNN, {"weights_shape": WL.shape},
        lambda: onednn.ConvTransposeBackwardWeights(**ONEDNN, weights_shape=WL.shape)(YL, XL),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory in which main() runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name, arrays, attributes):
    """The exit status of the command. Its files are in the working directory."""
    np.savez("in.npz", **arrays)
    with open("attributes.json", "w") as file:
        json.dump(attributes, file)
    return status_of("run", name, "--attrs", "attributes.json", "in.npz", "out.npz")


def assert_result(name, expected):
    with np.load("out.npz") as file:
        assert file.files == list(OPERATIONS[name].results)
        result = file[OPERATIONS[name].results[0]]
    assert result.dtype == expected.dtype and result.any()
    np.testing.assert_array_equal(result, expected)


def test_every_operation_can_be_run():
    """Every operation must be in the table, with the operation's own names if it has any."""
    shims = {f"mindspore.{name}" for name in ("Conv2DBackpropInput", "Conv2DTranspose")}
    shims |= {f"tensorflow.{name}" for name in raw_ops.__all__}
    shims |= {f"onednn.{name}" for name in onednn.__all__ if not name.startswith("Graph")}
    assert set(CALLS) == shims == {name for name in OPERATIONS if "." in name}
    for name in shims:
        arrays, shape = OPERATIONS[name].arrays, OPERATIONS[name].shape
        assert (tuple(CALLS[name][0]), tuple(CALLS[name][2])) == (arrays, (shape,) if shape else ())
        if name.startswith("onednn"):
            operation = getattr(onednn, name.partition(".")[2])
            assert (tuple(operation.takes.values()), operation.shape) == (arrays, shape)


@pytest.mark.parametrize("name", CALLS)
def test_run_equals_the_call(name, capsys):
    arrays, attributes, shape, direct = CALLS[name]
    assert run(name, arrays, attributes | shape) == 0
    expected = direct()
    assert_result(name, expected)
    assert capsys.readouterr().out == f"{OPERATIONS[name].results[0]}: float32 {expected.shape} -> out.npz\n"


@pytest.mark.parametrize("name", [name for name in CALLS if CALLS[name][2]])
@pytest.mark.parametrize("given_twice", [False, True])
def test_a_shape_may_be_an_array(name, given_twice):
    arrays, attributes, shape, direct = CALLS[name]
    ((attribute, sizes),) = shape.items()
    if given_twice:
        attributes = attributes | {attribute: [1, 1, 1, 1]}
    assert run(name, arrays | {attribute: np.array(sizes, np.int32)}, attributes) == 0
    assert_result(name, direct())


def test_run_in_a_process():
    """The command must run in a process that has imported no shim."""
    arrays, attributes, shape, direct = CALLS["mindspore.Conv2DTranspose"]
    assert run("mindspore.Conv2DTranspose", arrays, attributes | shape) == 0
    process = start("run", "mindspore.Conv2DTranspose", "--attrs", "attributes.json", "in.npz", "out.npz")
    assert (process.returncode, process.stderr) == (0, "")
    assert_result("mindspore.Conv2DTranspose", direct())


def test_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    arrays, attributes, shape, direct = CALLS["onednn.ConvolutionBackpropData"]
    halves = {name: array.astype(bfloat16).view("V2") for name, array in arrays.items()}
    assert run("onednn.ConvolutionBackpropData", halves, attributes | shape) == 0
    with np.load("out.npz") as file:
        np.testing.assert_array_equal(file["input_delta"].view(bfloat16), direct())  # integers of few bits


def without(values, name):
    return {key: value for key, value in values.items() if key != name}


@pytest.mark.parametrize("name", CALLS)
def test_what_every_operation_refuses(name, capsys):
    """Every operation must refuse unknown, wrong and missing attributes, and arrays that do not fit."""
    arrays, attributes, shape, _ = CALLS[name]
    required = "out_channel" if name.startswith("mindspore") else "strides"
    strides = "stride" if name.startswith("mindspore") else "strides"
    first = next(iter(arrays))
    cases = [
        (arrays, {"alpha": 1}, f"{name} has no attribute 'alpha'; it has "),
        (arrays, {strides: [0, 0]}, f"{name}: "),
        (arrays, {strides: "two"}, f"{name}: "),
        (arrays, {strides: 10**30}, f"{name}: "),
        (without(arrays, first), {}, f"has no array '{first}'; it has "),
        (arrays | {first: arrays[first][..., :1]}, {}, f"{name}: "),
        (arrays | {first: np.float32(1)}, {}, f"{name}: "),
        (arrays | {first: arrays[first].astype(np.int64)}, {}, f"{name}: "),
        (arrays | {first: arrays[first].astype(np.float64)}, {}, f"{name}: "),
    ]
    for inputs, bad, said in cases:
        assert run(name, inputs, attributes | shape | bad) == 2, bad
        assert_one_line(capsys.readouterr().err, said)
    for missing in (required, *shape):
        assert run(name, arrays, without(attributes | shape, missing)) == 2, missing
        assert_one_line(capsys.readouterr().err, missing)


@pytest.mark.parametrize(
    "name, bad, said",
    [
        ("mindspore.Conv2DTranspose", {"stride": 2**63}, "Unable to cast"),  # RuntimeError
        ("mindspore.Conv2DTranspose", {"input_size": [2, 4, 9, 5]}, "dout.shape[2] must be 4"),  # ShapeError
        ("tensorflow.Conv2D", {"strides": [2, 2, 1, 1]}, "in the batch and depth dimensions"),  # UnimplementedError
        ("tensorflow.Conv2D", {"padding": "same"}, "is not in the list of allowed values"),  # InvalidArgumentError
        ("onednn.Convolution", {"strides": [2]}, "(invalid_shape)"),  # GraphValueError
        ("onednn.Convolution", {"groups": 1.0}, "(invalid_graph_op)"),  # GraphTypeError
    ],
)
def test_exceptions_of_the_frameworks_are_one_line(name, bad, said, capsys):
    arrays, attributes, shape, _ = CALLS[name]
    assert run(name, arrays, attributes | shape | bad) == 2
    assert_one_line(capsys.readouterr().err, said)
