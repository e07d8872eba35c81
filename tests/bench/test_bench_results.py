"""Results as files, and the files that bench/results/ keeps."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import measure, models, report, results, suites
from bench.complaints import COMPLAINTS
from bench.training import report as training_report

KEPT = sorted(results.FOLDER.glob("*"))
#: Family and model of the processors, by the names of results.
MACHINES = {"zen3": ["25", "1"], "zen4": ["25", "17"], "zen5": ["26", "2"], "emerald_rapids": ["6", "207"]}
TINY = suites.rows(["tiny"], dtypes=["float32", "int32"])


def run_of(rows, libraries=("convgrad_cy", "a")):
    """A result of some rows, each with other times."""
    found = [
        {
            **measure.description(row),
            "tile": {"float32": 1e10, "int32": 2e10}[row.case.dtype],
            "results": {
                "convgrad_cy": {"seconds": 0.5 + number, "error": 1e-6, "memory": 4096, "calls": 7},
                "a": [{"unsupported": "no"}, {"wrong": "it is 7", "error": None}, {"seconds": 2.0}][number % 3]
                | ({"error": 0.0, "memory": None, "calls": 1} if number % 3 == 2 else {}),
            },
        }
        for number, row in enumerate(rows)
    ]
    layers = suites.lines(dict.fromkeys(row.layer for row in rows))
    return {"threads": 2, "libraries": {name: {"version": "1"} for name in libraries}, "layers": layers, "rows": found}


def test_what_is_written_is_read(tmp_path):
    data = run_of(TINY)
    results.write(data, tmp_path / "new" / "run.json")
    assert results.read(tmp_path / "new" / "run.json") == data
    assert [path.name for path in tmp_path.rglob("*.json*")] == ["run.json"], "nothing unfinished is left"


def test_a_row_has_its_line_and_no_more_than_it_needs(tmp_path):
    path = tmp_path / "run.json"
    results.write(run_of(TINY[:2]), path)
    first = '["tiny_8x8", "fprop", "NCX", "float32", [0.5, 1e-06, 4096, 7], {"unsupported": "no"}],'
    assert first in path.read_text().splitlines()


def test_a_file_keeps_the_layers_that_were_measured(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    results.write(run_of(TINY), path)
    before = results.read(path)["rows"]
    monkeypatch.setattr(suites, "LAYERS", [])
    assert results.read(path)["rows"] == before


def test_numbers_are_rounded(tmp_path):
    row = {"seconds": [0.123456789, 1.0], "name": "a", "few": None, "many": 123456789}
    results.write({"rows": [row]}, tmp_path / "run.json")
    assert results.read(tmp_path / "run.json")["rows"] == [{**row, "seconds": [0.12346, 1.0]}]


def test_a_run_without_rows(tmp_path):
    data = {**run_of([]), "stopped": "interrupted"}
    results.write(data, tmp_path / "run.json")
    assert results.read(tmp_path / "run.json") == data


def test_names():
    assert results.path_of("zen4-direct") == results.FOLDER / "zen4-direct.json"
    assert results.path_of("some/where.json") == Path("some/where.json")


def test_lines_of_layers():
    text = '[s]\nmb1ic4ih4oc4n"a*3"\ntransposed mb1ic4ih4oc4n"b"\n[t]\nmb1ic4ih4oc4n"c"'
    layers = suites.parse(text)
    assert suites.lines(layers) == text.splitlines()
    assert suites.parse("\n".join(suites.lines(suites.LAYERS))) == suites.LAYERS


# bench/results/


@pytest.mark.checkout
def test_what_is_kept_is_small():
    assert KEPT and sum(path.stat().st_size for path in KEPT) <= 2_000_000


@pytest.mark.checkout
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_is_kept_is_what_its_name_says(path):
    """MACHINE-ISA-WHAT.json."""
    data = results.read(path.stem)
    machine, isa, what = path.stem.split("-", 2)
    if what == "gpu":
        assert machine in data["about"]["gpu"].lower() and data["rows"] and all(row["right"] for row in data["rows"])
        return
    if what == "cores":
        assert data["machine"]["family"] == ["25", "17"] and data["threads"][0] == 1 and data["isa"] == isa
        assert {row["suite"] for row in data["rows"]} <= set(suites.NAMES) and len(data["rows"]) > 400
        assert all(set(row["threads"]) == {*map(str, data["threads"])} for row in data["rows"])
        return
    assert f", {isa}" in data["libraries"]["convgrad_cy"]["version"] and "stopped" not in data
    if what == "errors":
        assert all(len(row[how]) == len(data["channels"]) for row in data["rows"] for how in ("winograd", "direct"))
        return
    if what in ("training", "training-jax"):
        framework = "jax" if what == "training-jax" else "torch"
        assert data["kind"] == "training" and {row["model"] for row in data["rows"]} == {*models.names(framework)}
        assert training_report.markdown(data)
        return
    if what == "complaints":
        assert data["kind"] == "complaints" and {row["complaint"] for row in data["rows"]} == {*COMPLAINTS}
        return
    assert data["machine"]["family"] == MACHINES[machine]
    assert data["threads"] == {"1thread": 1, "16threads": 16}.get(what, 2)
    assert data["algorithm"] == ("direct" if what == "direct" else "auto")
    assert ({row["dtype"] for row in data["rows"]} == {"float32"}) != what.startswith("types")
    # The bound on memory in docs/performance.md.
    measured = [(row["results"]["convgrad_cy"]["memory"], row["bytes"]) for row in data["rows"]]
    assert all(memory <= 4 * arrays + data["threads"] * 3 * 2**20 for memory, arrays in measured)
    assert (len(data["libraries"]) == 1) == (what in ("direct", "1thread", "2threads"))
    assert report.markdown(data)
