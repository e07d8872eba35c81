"""The parts of the GPU benchmark that need no GPU: the rows to measure, and the report of made-up times."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench.gpu import child as gpu_child
from bench.gpu import ratio as gpu_ratio
from bench.gpu import report as gpu_report
from bench.gpu import rows as gpu_rows
from bench.gpu import variant_calls, variant_rows, variants

ABOUT = {"gpu": "NVIDIA H200", "cudnn": 91900}
CEILINGS = {"bfloat16": 800e12, "float32": 50e12, "float64": 60e12, "copy": 4e12}


def made_up(row, ours, cudnn, **others):
    found = {"ours_us": ours, "cudnn_us": cudnn, "error": 1e-3, "bitwise": True, "right": True}
    return {**gpu_ratio.description(row), **found, **others}


def result(**others):
    """Times of every row: ours are half of cuDNN's for dgrad and twice as long for wgrad."""
    rows = [made_up(row, 100.0, 200.0 if row.kernel == "dgrad" else 50.0) for row in gpu_rows.rows()]
    return {"about": ABOUT, "ceilings": CEILINGS, "rows": rows, "left_out": [], **others}


def cells(table, first):
    (line,) = (line for line in table.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_rows():
    """There must be both gradients of each layer, with legal shapes, and one padding for both ends, as in PyTorch."""
    rows = gpu_rows.rows()
    assert len({row.name for row in rows}) == len(rows)
    assert len([row for row in rows if row.group.name == "bfloat16, channels last"]) == 38
    assert {row.kernel for row in rows} == {"fprop", "dgrad", "wgrad", "both"}
    for row in rows:
        case = row.case
        axes = zip(case.x[2:], case.y[2:], case.kernel, case.stride, case.dilation, case.padding, strict=True)
        for x, y, kernel, stride, dilation, (begin, _) in axes:
            assert (x + 2 * begin - dilation * (kernel - 1) - 1) // stride + 1 == y, case.name
        assert case.flop > 0
    assert {layer.suite for layer in gpu_rows.LAYERS} == {group.suite for group in gpu_rows.GROUPS}
    assert set(gpu_rows.FEW) <= {layer.name for layer in gpu_rows.LAYERS}
    assert [row.kernel for row in gpu_rows.rows("resnet50_3x3_512 dgrad float64")] == ["dgrad"]


def test_floor_is_that_of_products_or_of_bytes():
    row = {"dtype": "bfloat16", "flop": 800e6, "bytes": 4e6}
    assert gpu_report.floor_us(row, CEILINGS) == pytest.approx(1)
    assert gpu_report.floor_us({**row, "bytes": 8e6}, CEILINGS) == pytest.approx(2)
    assert gpu_report.floor_us({**row, "dtype": "float16", "flop": 1600e6}, CEILINGS) == pytest.approx(2)
    assert gpu_report.floor_us({**row, "dtype": "int32"}, CEILINGS) == pytest.approx(1)


def test_groups():
    data = result()
    table = gpu_report.by_group(data)
    assert cells(table, "bfloat16, channels last")[1:] == [
        "1.00",
        "0.50 (resnet50_stem, wgrad)",
        "19/38",
        "0.5 (0.3)",
        "reached",
    ]
    assert cells(table, "depthwise, channels last")[-1] == "missed"
    for row in data["rows"]:
        if row["group"] == "bfloat16, channels last" and row["layer"] == "unet_64":
            row["ours_us"] *= 4
    assert cells(gpu_report.by_group(data), "bfloat16, channels last")[-1] == "missed"


def test_wrong_rows_have_no_ratio():
    row = gpu_rows.rows()[0]
    assert gpu_report.ratio(made_up(row, 10, 20)) == 2
    wrong = made_up(row, 10, 20, right=False)
    assert gpu_report.ratio(wrong) is None and gpu_report.remark(wrong) == "**wrong**"
    different = made_up(row, 10, 20, right=False, bitwise=False)
    assert gpu_report.remark(different) == "**not the same bits twice**"
    alone = made_up(row, 10, 20, cudnn_refuses="no engine")
    del alone["cudnn_us"]
    assert gpu_report.ratio(alone) is None and gpu_report.remark(alone) == "no engine"


class Asked:
    """A stand-in for the process that measures: a row takes a second, and the second one fails."""

    def __init__(self, path):
        self.path, self.time, self.done, self.saved = path, 0.0, 0, []

    def ask(self, do, patience=None, name=None, deterministic=False):
        if do == "about":
            return {"about": dict(ABOUT), "ceilings": CEILINGS}
        self.time += 1
        self.done += 1
        if self.done > 1:
            self.saved.append(len(json.loads(self.path.read_text())["rows"]))
        if self.done == 2:
            return {"failed": "MemoryError: no memory", "launch": "some.cu kernel", "exit": 3}
        return {"error": 1e-3, "bitwise": True, "ours_us": 10.0, "cudnn_us": 20.0, "right": True}


def test_rows_are_kept_and_failures_are_rows(tmp_path, monkeypatch, capsys):
    """The file must have each row before the next begins. Rows without time must be named."""
    child = Asked(tmp_path / "made_up.json")
    monkeypatch.setattr(gpu_ratio.time, "monotonic", lambda: child.time)
    rows = gpu_rows.rows("unet_64 ")[:5]
    data = gpu_ratio.measure(rows, 2.5, child.path, child)
    assert child.saved == [1, 2]
    assert [found["right"] for found in data["rows"]] == [True, False, True]
    assert data["left_out"] == [row.name for row in rows[3:]]
    printed = capsys.readouterr().out
    assert f"2.00 {rows[0].name}" in printed
    assert f"- {rows[1].name} failed: MemoryError: no memory\n    launch: some.cu kernel\n" in printed
    text = gpu_report.markdown(data)
    assert "failed: MemoryError: no memory" in text and f"No time was left for 2 rows: {rows[3].name}" in text


def test_report_of_a_file(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    gpu_report.write(result(), tmp_path, "made_up")
    assert (tmp_path / "made_up.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "made_up.json").read_text())["about"] == ABOUT
    gpu_report.main([str(tmp_path / "made_up.json")])
    assert capsys.readouterr().out == (tmp_path / "made_up.md").read_text()


def test_list(capsys):
    gpu_ratio.main(["--list", "--match", "vgg16_64 wgrad bfloat16"])
    assert capsys.readouterr().out.splitlines() == [
        "vgg16_64 wgrad bfloat16, channels last",
        "vgg16_64 wgrad bfloat16, channels first",
    ]
    first = ["--match", "batch_1_3x3_128 dgrad", "--match", "3x3_128 fprop"]
    gpu_ratio.main(["--list", *first, "--match", "batch_1_3x3_128"])
    assert capsys.readouterr().out.splitlines() == [
        "batch_1_3x3_128 dgrad small batches and odd strides, bfloat16, channels last",
        "resnet50_3x3_128 fprop forward, bfloat16, channels last",
        "batch_1_3x3_128 wgrad small batches and odd strides, bfloat16, channels last",
    ]


@pytest.mark.parametrize("arguments, code, message", [(["--help"], 0, "--minutes"), (["--match", "?"], 2, "was '?'")])
def test_command_line(arguments, code, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        gpu_ratio.main(arguments)
    assert stopped.value.code == code
    assert message in "".join(capsys.readouterr())


@pytest.mark.skipif(gpu_ratio.missing() is None, reason="there is a GPU")
def test_without_a_gpu(capsys):
    with pytest.raises(SystemExit) as stopped:
        gpu_ratio.main([])
    assert stopped.value.code == 2
    assert f"python -m bench.gpu.ratio: {gpu_ratio.missing()}" in capsys.readouterr().err


# ---- every variant ----


@pytest.fixture
def on_the_cpu(monkeypatch):
    """Use the CPU instead of the GPU."""

    def on_device(row, case, tensors):
        result = {"fprop": case.y, "dgrad": case.x, "wgrad": case.w}[row.kernel]
        out = np.empty(result, tensors["x"].dtype)
        arrays = [tensors[name] for name in "xwy"]
        return lambda: variant_calls.called(row.kernel, case, arrays, out=out, algorithm="direct"), out, "NCX"

    monkeypatch.setattr(variant_calls, "_on_device", on_device)
    monkeypatch.setattr(variant_calls, "to_host", lambda array, order: array.copy())
    return monkeypatch


@pytest.mark.parametrize("kernel", variant_rows.KERNELS)
@pytest.mark.parametrize("problem", variant_rows.LAYERS)
def test_differences(kernel, problem, on_the_cpu):
    """All results are right, NaN among them; one wrong element is found, and one that changes."""
    row = variant_rows.Row("gather", "float64", kernel, variant_rows.FORMATS[0], (problem,))
    assert list(variant_calls.differences(row)) == []
    changes = iter([None, 0.5, None, None, np.nan, np.nan, 77.0, 77.0])

    def spoiled(array, order):
        array, change = array.copy(), next(changes, None)
        if change is not None:
            array.flat[array.size // 2] = change
        return array

    on_the_cpu.setattr(variant_calls, "to_host", spoiled)
    first, *others = variant_calls.differences(row)
    assert first == f"{problem}, integers: not the same twice"
    one, other = variant_rows.READ[kernel]
    starts = (f"{problem}, {one} infinite: 1 of ", f"{problem}, NaN and infinity in {other}: 1 of ")
    assert len(others) == 2 and all(map(str.startswith, others, starts))


def test_names_of_rows(capsys):
    with pytest.raises(SystemExit) as stopped:
        variants.main(["--here", "gather", "float32-high"])
    assert stopped.value.code == 2
    assert "--here must be a line of --list, was 'gather float32-high'" in capsys.readouterr().err
    variants.main(["--list", "--family", "mma", "--dtype", "float32"])
    assert capsys.readouterr().out.splitlines() == ["mma float32-high", "mma float32-medium"]


@pytest.mark.skipif(gpu_ratio.missing() is None, reason="there is a GPU")
def test_variants_without_a_gpu(capsys):
    with pytest.raises(SystemExit) as stopped:
        variants.main([])
    assert stopped.value.code == 2
    assert f"python -m bench.gpu.variants: {gpu_child.missing()}" in capsys.readouterr().err


# ---- errors of results ----


@pytest.mark.torch
@pytest.mark.parametrize("kernel", ("fprop", "dgrad", "wgrad"))
@pytest.mark.parametrize("layer", ("resnext50_4_a_group", "depthwise_3x3_144", "dcgan_128_64"))
def test_a_wrong_element_anywhere_in_the_compared_parts_is_seen(kernel, layer):
    """The last image, the last filter and NaN anywhere must be seen; the results of PyTorch itself are right."""
    import torch

    from bench.gpu import exact

    (found,) = (one for one in gpu_rows.LAYERS if one.name == layer)
    case = found.case("NCX", "float32")
    case = replace(case, x=(3, *case.x[1:]), y=(3, *case.y[1:]))
    torch.manual_seed(0)
    x, w, y = (torch.randn(shape) for shape in (case.x, case.w, case.y))
    (result,) = exact.convolved(x, w, y, case, case.groups, kernel)
    assert exact.error(case, kernel, x, w, y, result) < 1e-5
    for index in (0, -1):
        wrong = result.clone()
        wrong[index].view(-1)[-1] += 1000
        assert exact.error(case, kernel, x, w, y, wrong) > 0.1
    unwritten = result.clone()
    unwritten[result.shape[0] // 2].view(-1)[3] = float("nan")
    assert exact.error(case, kernel, x, w, y, unwritten) == float("inf")
