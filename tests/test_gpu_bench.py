"""The parts of the GPU benchmark that need no GPU: what it would measure, and the report of made-up times."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import which

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))

from bench import gpu_ratio, gpu_report, gpu_rows, gpu_small

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
    """Both gradients of each layer; shapes are those of convolutions; PyTorch has one padding for both ends."""
    rows = gpu_rows.rows()
    assert len({row.name for row in rows}) == len(rows)
    assert len([row for row in rows if row.group.name == "bfloat16, channels last"]) == 38
    assert {row.kernel for row in rows} == {"dgrad", "wgrad"}
    for row in rows:
        case = row.case
        axes = zip(case.x[2:], case.y[2:], case.kernel, case.stride, case.padding, strict=True)
        assert all((x + 2 * begin - kernel) // stride + 1 == y for x, y, kernel, stride, (begin, _) in axes), case.name
        assert case.flop > 0 and set(case.dilation) == {1}
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


def test_failure_is_a_row():
    class Failing:
        class Measurement:
            def __init__(self, row):
                raise MemoryError("no memory\nat all")

    row = gpu_ratio.measured(gpu_rows.rows()[0], Failing)
    assert (row["right"], row["failed"]) == (False, "MemoryError: no memory")
    data = result(rows=[row], left_out=["one more"])
    text = gpu_report.markdown(data)
    assert "failed: MemoryError: no memory" in text and "No time was left for 1 rows: one more" in text


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
    assert f"python -m bench.gpu_ratio: {gpu_ratio.missing()}" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", ("float64", "int32"))
def test_small_calls(dtype):
    """With the CPU in the place of the GPU all are right, and one wrong element is found."""
    dtype = np.dtype(dtype)
    for problem in gpu_small.PROBLEMS:
        assert list(gpu_small.wrong_calls(problem, dtype, np.array, np.asarray)) == []

    def spoiled(array):
        array = array.copy()
        array.flat[array.size // 2] += 1
        return array

    assert len(list(gpu_small.wrong_calls(gpu_small.PROBLEMS[0], dtype, np.array, spoiled))) == 6


@pytest.mark.skipif(which("bash") is None, reason="bash is not on the path")
def test_steps_of_the_script(tmp_path):
    script = Path(gpu_small.__file__).with_name("gpu_all.sh")
    done = subprocess.run(["bash", script, tmp_path, "environment", "all"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "a step must be one of environment, build, tests, sanitize, ratio, was all" in done.stderr
