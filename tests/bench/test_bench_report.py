"""Reports of the benchmark suite: arithmetic, tables, Markdown, the command line."""

import sys
from importlib.util import find_spec
from math import log
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import __main__ as command
from bench import measure, report, results, suites, summary, table

FIRST = measure.description(suites.rows(["tiny"])[0])


def result_of(ours, peers, **fields):
    """A row with these times."""
    results = {"convgrad_cy": ours, **peers}
    results = {name: {"seconds": time} if isinstance(time, float) else time for name, time in results.items()}
    return {**FIRST, "flop": 4_000_000_000, "tile": 1e10, "results": results, **fields}


DATA = {
    "machine": {"processor": "one", "family": ["1", None], "system": "s", "date": "2026-01-01T00:00:00", "commit": "c"}
    | {"load_at_start": 0.0},
    "threads": 2,
    "seconds": 0.1,
    "copy": 1e10,
    "libraries": {"convgrad_cy": {"version": "1"}, "a": {"version": "2"}, "b": {"failed": "it is gone"}},
    "rows": [
        result_of(1.0, {"a": {"seconds": 2.0, "error": 1e-6}, "b": 4.0}, count=3),
        result_of(0.5, {"a": 0.25, "b": {"unsupported": "no layout"}}, kernel="dgrad", tile=1.6e10),
        result_of(0.5, {"a": {"unsupported": "no"}, "b": {"failed": "gone"}}),
    ],
}


def test_arithmetic():
    first, second, third = rows = DATA["rows"]
    assert summary.best_peer(first) == (2.0, "a") and summary.best_peer(third) is None
    assert [summary.ratio(row) for row in rows] == [2.0, 0.5, None]
    assert summary.geometric_mean([2.0, 8.0]) == pytest.approx(4.0) and summary.geometric_mean([]) is None
    assert log(summary.geometric_mean([0.5, 2.0])) == pytest.approx(0)
    assert summary.rate(first, "convgrad_cy") == 4e9
    # The tile's rate is a constant of the machine: the best rate of the run.
    assert summary.share_of_tile(first, rows) == 0.25 and summary.share_of_tile(second, rows) == 0.5
    assert [row for _, row in summary.ratios(rows)] == [second, first]
    assert summary.step_seconds(rows, "convgrad_cy") == 3 * 1.0 + 0.5 + 0.5 and summary.step_seconds(rows, "b") is None
    assert summary.troubles(rows) == [] and summary.troubles(rows, "b") == [(third, "gone")]


def test_best_of_two_times():
    fast, slow = {"error": 0.0, "seconds": 1.0, "calls": 3}, {"error": 0.0, "seconds": 2.0, "calls": 2}
    first = {"layer": "a", "tile": 4.0, "results": {"p": fast, "q": slow, "r": fast, "s": {"failed": "gone"}}}
    second = {"layer": "a", "tile": 5.0, "results": {"p": slow, "q": slow, "r": {"wrong": "2"}, "s": fast}}
    best = {"p": {**fast, "calls": 5}, "q": {**slow, "calls": 4}, "r": {"wrong": "2"}, "s": {"failed": "gone"}}
    assert measure.best_of(first, second) == {"layer": "a", "tile": 5.0, "results": best}


def test_conclusion():
    text = "\n".join(table.conclusion(DATA))
    assert "all rows: 1.00; 1 of 2 rows at 0.95 or more" in text
    assert "worst row: 0.50" in text and "nearest to the bare tile: 50%" in text
    assert "b: wrong or failed in 1 rows" in text
    assert table.line(DATA["rows"][0], DATA["rows"], ["a", "b"]).split()[-6:] == ["NCX", "4", "25%", "2", "1", "2.00"]


def test_markdown():
    text = report.markdown(DATA)
    assert "| tiny | float32 | NCX | 2 | 1.00 | 0.50 (tiny_8x8, conv) |" in text
    assert "b, unsupported (1 rows): no layout" in text
    assert "| a | float32 | 1.0e-06 | tiny_8x8, conv |" in text
    assert "load at the start 0.00" in text and "Bare register tile: float32 16 GFLOP/s" in text


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_report_files(tmp_path):
    results.write({**DATA, "layers": suites.lines([suites.rows(["tiny"])[0].layer])}, tmp_path / "run.json")
    report.main([str(tmp_path / "run.json"), "--out", str(tmp_path / "out")])
    names = {path.name: path.read_bytes()[:4] for path in (tmp_path / "out").iterdir()}
    assert set(names) == {"run.md", "run_ratios.png", "run_roofline.png"}
    assert names["run_ratios.png"] == names["run_roofline.png"] == b"\x89PNG"


def test_command_line(capsys, tmp_path):
    file = tmp_path / "result.json"
    arguments = "--suite tiny --match digits --layout NCX --op fprop --peers= --threads 1"
    assert command.main([*arguments.split(), "--seconds", "0.001", "--passes", "2", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "1 rows; this will take about" in printed and printed.count("tiny_digits  ") == 2
    data = results.read(file)
    assert [row["layer"] for row in data["rows"]] == ["tiny_digits"] and data["threads"] == 1
    assert report.markdown(data)


def test_list(capsys):
    assert command.main(["--list", "--suite", "dcgan"]) == 0
    assert "dcgan_g_image" in capsys.readouterr().out


def test_no_plot_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="2"):
        command.main(["--plot", "plot.svg"])
    assert "--plot needs matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--suite", "resnet51"], "'resnet51' is none of resnet50"),
        (["--match", "("], "no regular expression"),
        (["--match", "nothing_has_this_name"], "no layer is left"),
        (["--python", "pandas=/usr/bin/python3"], "NAME=PATH"),
        (["--threads", "0"], "--threads must be 1 to"),
        (["--passes", "0"], "--passes must be 1 or more"),
        (["--seconds", "nan"], "must be a positive number, not 'nan'"),
        (["--seconds", "-1"], "must be a positive number, not '-1'"),
        (["--json", "."], "must be a file in a folder that can be written, not '.'"),
        (["--json", f"{__file__}/result.json"], "must be a file in a folder that can be written"),
        (["--peers", "jax", "--python", "jax=/nowhere"], "--python jax=PATH"),
    ],
)
def test_wrong_arguments(capsys, arguments, said):
    with pytest.raises(SystemExit) as error:
        command.main(arguments)
    assert error.value.code == 2 and said in capsys.readouterr().err
