"""The benchmark suite: its layers, its workers, and its judgement. No timing is judged."""

import json
import sys
from math import prod
from pathlib import Path

import numpy as np
import pytest
import reference

sys.path.append(str(Path(__file__).parents[2]))

from bench import measure, processes, report, suites, summary, table, verify
from bench.case import Case, Unsupported, activation_in, filter_in, written_plainly
from bench.worker import Operands, Worker, relative_error

TINY = suites.rows(["tiny"])
#: The hardest layers for the definition of single elements: groups, stride, dilation, padding on one side, rests.
ODD = suites.parse(
    '[odd]\nmb2g2ic4ih9iw7oc6kh3kw2sh2dh1dw0ph1pw1n"odd_groups"\ntransposed mb1ic3iw11ow4oc5kw3sw3pw0n"odd_rest"\n'
)


@pytest.fixture(autouse=True)
def no_time_for_the_tile(monkeypatch):
    monkeypatch.setattr(measure, "FIRST_TILE_SECONDS", 0.001)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """The worker of this package, as a process."""
    process = processes.Process("convgrad_cy", sys.executable, 1, tmp_path_factory.mktemp("log"))
    yield process
    process.end()


def row_of(name, kernel, layout, dtype="float32"):
    return next(row for row in suites.rows(layouts=[layout], dtypes=[dtype], match=f"^{name}$") if row.kernel == kernel)


# the suites


def test_suites():
    wanted = "resnet50 vgg16 unet dcgan mobilenet resnext unet3d hifigan vit five inference tiny"
    assert set(wanted.split()) <= set(suites.NAMES)
    assert any(layer.transposed for layer in suites.LAYERS)
    assert {len(layer.problem.x) for layer in suites.LAYERS} == {1, 2, 3}


@pytest.mark.parametrize(
    "suite, count", [("resnet50", 53), ("vgg16", 13), ("unet", 23), ("mobilenet", 52), ("unet3d", 18)]
)
def test_whole_networks_have_all_their_layers(suite, count):
    assert sum(layer.count for layer in suites.LAYERS if layer.suite == suite) == count


@pytest.mark.parametrize("layer", suites.LAYERS, ids=lambda layer: layer.name)
def test_shapes(layer):
    case = layer.case("NXC", "float32")
    for x, y, kernel, stride, dilation, padding in zip(
        case.x[2:], case.y[2:], case.kernel, case.stride, case.dilation, case.padding, strict=True
    ):
        assert (x + sum(padding) - (kernel - 1) * dilation - 1) // stride + 1 == y
    assert case.w[0] == case.y[1] and case.w[1] * case.groups == case.x[1] and case.x[0] == case.y[0]
    products = prod(case.y) * prod(case.w[1:])
    assert 0 < case.flop <= 2 * products
    if all(padding == (0, 0) for padding in case.padding):
        assert case.flop == 2 * products
    assert case.flop < 25e9, "too much for the slowest of the libraries"


def test_useful_flop_leave_products_with_padding_out():
    (layer,) = suites.parse('[s]\nmb2g2ic4ih3oc6kh3ph1n"a"')
    # Along an axis of 3 with 3 taps and padding 1, the ends reach 2 elements and the middle 3.
    assert layer.case("NCX", "float32").flop == 2 * 2 * 6 * 2 * 7**2


def test_counts_and_kinds():
    layers = suites.parse('# note\n[s]\nmb1ic4ih4oc4n"a*3"\n\n[t]\ntransposed mb1ic4ih4oc4n"b"\n')
    assert [(layer.suite, layer.name, layer.count, layer.transposed) for layer in layers] == [
        ("s", "a", 3, False),
        ("t", "b", 1, True),
    ]


@pytest.mark.parametrize(
    "text, said",
    [
        ('mb1ic4ih4oc4n"a"', "before the first"),
        ('[s]\nmb1ic4ih4oc4n"a*0"', "syntax"),
        ('[s]\nforward mb1ic4ih4oc4n"a"', "syntax"),
        ('[s]\nmb1ic4ih4oc4n"a"\n[t]\nmb1ic4ih5oc4n"a"', "twice"),
    ],
)
def test_malformed_suites(text, said):
    with pytest.raises(ValueError, match=said):
        suites.parse(text)


def test_rows():
    assert {row.case.function(row.kernel) for row in suites.rows(["dcgan"], ["conv_transpose"])} == {"conv_transpose"}
    both = {row.case.function(row.kernel) for row in suites.rows(["dcgan"], ["dgrad"])}
    assert both == {"conv_transpose", "conv_backward_data"}
    assert {row.case.layout for row in suites.rows(layouts=["NXC"])} == {"NXC"}
    assert [row.layer.name for row in suites.rows(operations=["wgrad"], layouts=["NCX"], match="b16$")] == ["vit_b16"]


def test_a_case_survives_its_message():
    case = ODD[0].case("NXC", "bfloat16")
    assert Case.from_message(json.loads(json.dumps(case.message()))) == case


def test_layouts():
    x, w = np.arange(24.0).reshape(1, 2, 3, 4), np.arange(60.0).reshape(5, 2, 3, 2)
    assert activation_in("NXC", x).shape == (1, 3, 4, 2) and filter_in("NXC", w).shape == (3, 2, 2, 5)
    for layout in ("NCX", "NXC"):
        np.testing.assert_array_equal(written_plainly(layout, "dgrad", activation_in(layout, x)), x)
        np.testing.assert_array_equal(written_plainly(layout, "wgrad", filter_in(layout, w)), w)


# the judgement


def tensors_of(case):
    rng = np.random.default_rng(0)
    return tuple(verify.draw(shape, "int32", rng) for shape in (case.x, case.w, case.y))


@pytest.mark.parametrize("layer", [*ODD, TINY[0].layer], ids=lambda layer: layer.name)
@pytest.mark.parametrize("kernel", ["fprop", "dgrad", "wgrad"])
def test_single_elements_are_those_of_the_definition(layer, kernel):
    case = layer.case("NCX", "float64")
    x, w, y = tensors_of(case)
    geometry = layer.problem.geometry
    result = {
        "fprop": lambda: reference.fprop(x, w, case.y, **geometry),
        "dgrad": lambda: reference.dgrad(y, w, case.x, **geometry),
        "wgrad": lambda: reference.wgrad(x, y, case.w, **geometry),
    }[kernel]()
    for index in np.ndindex(result.shape):
        assert verify.element(case, kernel, index, x, w, y)[0] == result[index]
    verify.spot_check(case, kernel, result, x, w, y, np.random.default_rng(1))
    with pytest.raises(verify.Wrong, match=f"{kernel} of {case.name} at"):
        verify.spot_check(case, kernel, result + 1, x, w, y, np.random.default_rng(1))


def test_relative_error():
    expected = np.array([[1.0, -4.0], [2.0, 0.0]])
    assert relative_error(expected, expected) == 0
    assert relative_error(expected + np.eye(2)[1] * [[0], [1]], expected) == 0.25
    assert np.isnan(relative_error(np.array([[1.0, -4.0], [np.nan, 0.0]]), expected))
    assert np.isnan(relative_error(np.array([[np.nan, -4.0], [2.0, 0.0]]), expected))
    with pytest.raises(ValueError, match="shape"):
        relative_error(expected[:1], expected)


def test_faults():
    assert verify.fault(1e-5, "float32") is None
    assert "1.0e-04" in verify.fault(1e-4, "float32")
    assert verify.fault(1e-3, "bfloat16") is None and verify.fault(1e-3, "float16")
    assert verify.fault(0.0, "int32") is None and verify.fault(1e-9, "int32")
    assert verify.fault(float("nan"), "float64")
    assert verify.fault(1e-4, "float32", verify.PEER_SLACK) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_data_are_values_of_the_type_and_not_zero(dtype):
    data = verify.draw((50, 50), dtype, np.random.default_rng(0))
    assert (data.astype(dtype) == data).all() and (data != 0).all() and len(np.unique(data)) > 10


# the workers


@pytest.mark.parametrize("layout", ["NCX", "NXC"])
@pytest.mark.parametrize("name", ["tiny_transposed", "tiny_1d", "tiny_3d", "tiny_depthwise"])
def test_measure(ours, tmp_path, name, layout):
    bench = measure.Bench({"convgrad_cy": ours}, tmp_path)
    for kernel in ("fprop", "dgrad", "wgrad"):
        row = bench.measure(row_of(name, kernel, layout), 0.001)
        result = row["results"]["convgrad_cy"]
        assert result["seconds"] > 0 and result["calls"] >= measure.ROUNDS and result["error"] < 2e-5
        assert row["tile"] > 0 and row["flop"] > 0
        json.dumps(row, allow_nan=False)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_measure_types(ours, tmp_path, dtype):
    row = measure.Bench({"convgrad_cy": ours}, tmp_path).measure(row_of("tiny_8x8", "dgrad", "NXC", dtype), 0.001)
    assert row["results"]["convgrad_cy"]["seconds"] > 0
    assert row["bytes"] == (8 * 64 + 8 * 72 + 8 * 36) * np.dtype(dtype).itemsize


def test_about_and_copy(ours):
    assert ours.ask("about")["version"]
    assert ours.ask("copy", seconds=0.001)["rate"] > 0


def test_a_wrong_result_is_not_timed(ours, tmp_path):
    bench = measure.Bench({"convgrad_cy": ours}, tmp_path)
    row = row_of("tiny_8x8", "fprop", "NCX")
    bench.prepare(row)
    operands = Operands(tmp_path, row.case)
    expected = np.array(operands.read("fprop"))
    expected[-1, -1, -1, -1] += 0.01
    operands.write("fprop", expected)
    measured = bench.measure(row, 0.001)
    assert "relative error" in measured["results"]["convgrad_cy"]["wrong"]
    assert table.rate_cell(measured, "convgrad_cy") == "!" and summary.rate(measured, "convgrad_cy") is None
    assert summary.troubles([measured]) and "wrong" in report.reasons({"rows": [measured]})


class Refusing:
    """A library that refuses every operation, in four ways."""

    version, allocates_result, refusals = "0", True, (NotImplementedError,)

    def operation(self, case, kernel, x, w, y):
        raise {"fprop": Unsupported("no such\nlayout"), "dgrad": NotImplementedError("nor this")}.get(
            kernel, KeyError(7)
        )


def test_refusals_and_failures(tmp_path):
    case = TINY[0].case
    operands = Operands(tmp_path, case)
    for name in "xwy":
        operands.write(name, np.ones(operands.shapes[name]))
    worker = Worker(Refusing())

    def load(kernel):
        return worker.answer({"do": "load", "folder": str(tmp_path), "case": case.message(), "kernel": kernel})

    assert load("fprop") == {"unsupported": "no such layout"}
    assert load("dgrad") == {"unsupported": "NotImplementedError: nor this"}
    assert load("wgrad") == {"failed": "KeyError: 7"}
    row = {"results": {"a": load("fprop"), "b": load("wgrad")}, "flop": 1}
    assert table.rate_cell(row, "a") == "-" and table.rate_cell(row, "b") == "x"


def test_a_library_that_is_too_slow_is_left_out(ours, tmp_path):
    bench = measure.Bench({"convgrad_cy": ours}, tmp_path)
    row = row_of("tiny_8x8", "wgrad", "NCX")
    bench.slow_rates["convgrad_cy", "wgrad", "NCX", "float32"] = row.case.flop / 11.0
    measured = bench.measure(row, 0.001)
    assert "skipped" in measured["results"]["convgrad_cy"] and table.rate_cell(measured, "convgrad_cy") == "~"
    assert "seconds" in bench.measure(row_of("tiny_8x8", "fprop", "NCX"), 0.001)["results"]["convgrad_cy"]


def test_a_lost_process_is_told_and_starts_again(tmp_path):
    process = processes.Process("convgrad_cy", sys.executable, 1, tmp_path)
    try:
        process.start()
        process.child.kill()
        process.child.wait()
        with pytest.raises(processes.Lost, match="ended with status -9"):
            process.ask("about")
        assert process.ask("about")["version"]
        with pytest.raises(processes.Lost, match="no answer"):
            process.ask("copy", patience=0.01, seconds=5.0)
    finally:
        process.end()


def test_a_library_that_is_not_there(tmp_path):
    assert processes.has_library(sys.executable, "numpy")
    assert not processes.has_library(sys.executable, "convgrad_cy_nowhere")
    assert not processes.has_library(str(tmp_path / "python"), "numpy")
    process = processes.Process("no_such_library", sys.executable, 1, tmp_path)
    with pytest.raises(processes.Lost, match="no_such_library"):
        process.ask("about")


def test_interpreters(monkeypatch):
    monkeypatch.setenv("CONVGRAD_CY_BENCH_PYTHON_JAX", "/from/environment")
    assert processes.python_of("jax") == "/from/environment"
    assert processes.python_of("jax", {"jax": "/given"}) == "/given"
    assert processes.python_of("torch") == sys.executable


@pytest.fixture(scope="module")
def torch(tmp_path_factory):
    process = processes.Process("torch", sys.executable, 1, tmp_path_factory.mktemp("log"))
    yield process
    process.end()


@pytest.mark.torch
@pytest.mark.parametrize("name", ["tiny_8x8", "tiny_transposed", "tiny_1d", "tiny_3d"])
def test_torch_computes_the_same(ours, torch, tmp_path, name):
    bench = measure.Bench({"convgrad_cy": ours, "torch": torch}, tmp_path)
    for row in suites.rows(match=f"^{name}$"):
        assert bench.measure(row, 0.001)["results"]["torch"]["seconds"] > 0
