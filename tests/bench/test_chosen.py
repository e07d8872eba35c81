"""``python -m bench.chosen``: which rows are slow, which are measured again, and a run of it."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import chosen, results

FIELDS = {"kernel": "fprop", "layout": "NCX", "dtype": "float32", "tile": 1.0}


def row(layer, plain, with_choice):
    times = {chosen.PLAIN: plain, chosen.CHOSEN: with_choice}
    return {"layer": layer, **FIELDS, "results": {name: {"seconds": time} for name, time in times.items() if time}}


def test_slow_rows():
    rows = [row("equal", 1.0, 1.0), row("slow", 1e-3, 1.2e-3), row("tie", 1.0, 1.029), row("missing", None, 1.0)]
    assert list(map(chosen.is_slow, rows)) == [False, True, False, False]
    _, line, last = chosen.conclusion(rows)
    assert line.split() == ["1.200", "1000.0", "slow", "fprop", "NCX", "float32"]
    assert last == "3 rows, 1 above 1.03; geometric mean 0.93x faster than PyTorch"


def test_only_slow_rows_are_measured_again(monkeypatch):
    """The best of all times must count, and each further measurement must be longer."""
    runs = [
        [row("a", 1.0, 1.0), row("b", 1.0, 1.5), row("c", 1.0, 2.0)],
        [row("b", 1.0, 1.0), row("c", 1.0, 1.9)],
        [row("c", 1.0, 1.8)],
        [row("c", 1.0, 1.95)],
    ]
    asked = []

    def run(rows, peers, options):
        asked.append((rows, options.seconds))
        return {"rows": runs[len(asked) - 1]}

    monkeypatch.setattr(chosen, "run", run)
    monkeypatch.setattr(chosen.extremes, "rows_of", lambda options: ["a", "b", "c"])
    found = chosen.measured(chosen.arguments(["--seconds", "1"]))["rows"]
    assert asked == [(["a", "b", "c"], 1.0), (["b", "c"], 4.0), (["c"], 16.0), (["c"], 64.0)]
    assert [chosen.ratio(one) for one in found] == [1.0, 1.0, 1.8]


@pytest.mark.torch
def test_a_run(tmp_path, capfd, monkeypatch):
    pytest.importorskip("torch", minversion="2.9")
    monkeypatch.setattr(chosen, "AGAIN", 0)
    monkeypatch.setenv(chosen.FILE, "")  # main sets it
    file = tmp_path / "result.json"
    argv = ["--sets", "random", "--count", "2", "--layout", "NCX", "--seconds", "0.001", "--json", str(file)]
    assert chosen.main(argv) in (0, 1)
    rows = results.read(file)["rows"]
    assert len(rows) == 6 and all({chosen.PLAIN, chosen.CHOSEN} <= row["results"].keys() for row in rows)
    assert "rows, " in capfd.readouterr().out
