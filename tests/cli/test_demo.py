"""``python -m convgrad_cy demo``: the whole demo, and its own checks."""

import re
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from commands import assert_one_line, start

import convgrad_cy as cg
from convgrad_cy.cli import output
from convgrad_cy.cli.demo import digits, gradient_check, training
from convgrad_cy.cli.main import main


def test_digits():
    train, test = digits.load()
    assert train.images.shape == (1347, 1, 8, 8) and test.images.shape == (450, 1, 8, 8)
    assert train.images.dtype == np.float32 and train.images.min() == 0 and train.images.max() == 1
    for label in range(10):
        counts = (train.labels == label).sum(), (test.labels == label).sum()
        assert abs(counts[1] - 450 / 1797 * sum(counts)) < 1
    same = [image.tobytes() for image in (*train.images, *test.images)]
    assert len(set(same)) == 1797, "an image is in both sets"


def test_gradient_check_sees_a_wrong_gradient(monkeypatch):
    assert all(check.passed for check in gradient_check.check_operations())
    right = cg.conv_backward_filter
    monkeypatch.setattr(cg, "conv_backward_filter", lambda *a, **k: right(*a, **k) * (1 + 1e-9))
    verdicts = {check.name: check.passed for check in gradient_check.check_operations()}
    assert [name for name, passed in verdicts.items() if not passed] == ["conv_backward_filter"]
    few = digits.load(np.float64)[0]
    monkeypatch.setattr(cg, "conv_backward_filter", lambda *a, **k: right(*a, **k) * 1.001)
    assert not gradient_check.check_network(few.images[:4], few.labels[:4]).passed
    assert not gradient_check.Check("", float("nan"), 1.0).passed


def test_demo(tmp_path):
    """The whole demo must succeed. It has one thread: threads of several demos would wait for each other."""
    picture = tmp_path / "demo.png"
    plot = ["--plot", picture] if find_spec("matplotlib") else []
    process = start("demo", *plot, variables={"OMP_NUM_THREADS": "1"})
    assert (process.returncode, process.stderr) == (0, "")
    for name in (*(name for name in cg.__all__ if name.startswith("conv")), "the whole network"):
        assert re.search(rf"^  {name} +\S+ +pass$", process.stdout, re.MULTILINE)
    assert float(re.search(r"test accuracy +([\d.]+)%", process.stdout)[1]) >= 97
    error, mean_image = map(float, re.search(r"RMSE +([\d.]+) \(the mean image: ([\d.]+)\)", process.stdout).groups())
    assert error < mean_image / 2
    assert float(re.search(r"time per step +([\d.]+) ms", process.stdout)[1]) > 0
    assert "\r" not in process.stdout, "a progress bar in a file"
    if plot:
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_fails_where_something_is_wrong(monkeypatch, capsys):
    """The demo must fail after one epoch, which is too little, and with a bad gradient, at any accuracy."""
    assert main(["demo", "--epochs", "1"]) == 1
    assert "FAIL (required: 97%)" in capsys.readouterr().out
    monkeypatch.setattr(training, "MINIMUM_ACCURACY", 0.0)
    assert main(["demo", "--epochs", "1"]) == 0
    monkeypatch.setattr(gradient_check, "OPERATION_TOLERANCE", 0.0)
    assert main(["demo", "--epochs", "1"]) == 1
    assert "FAIL (allowed: 0e+00)" in capsys.readouterr().out


def test_progress_bar_on_a_terminal(monkeypatch, capsys):
    output.progress(1, 2, "nobody sees it")
    output.clear_progress()
    assert capsys.readouterr().out == "", "a progress bar in a file"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.progress(1, 2, "half")
    output.progress(2, 2, "done")
    output.clear_progress()
    half, whole, new = "#" * 15 + "." * 15, "#" * 30, "\r\x1b[K"
    assert capsys.readouterr().out == f"{new}  [{half}] half{new}  [{whole}] done{new}"


def test_plot_without_matplotlib(monkeypatch, capsys, tmp_path):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--plot", str(tmp_path / "demo.png")]) == 2
    printed = capsys.readouterr()
    assert printed.out == "", "trained before it looked"
    assert_one_line(printed.err, "--plot needs matplotlib (pip install matplotlib)")


@pytest.mark.parametrize(
    "file, said",
    [
        ("demo.xyz", "--plot must end in one of ."),
        ("demo", "--plot must end in"),
        ("missing/demo.png", "No such file or directory"),
    ],
)
def test_plot_to_a_bad_file(file, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib")
    assert main(["demo", "--plot", file]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err, said)
