"""``bench.tune``: the rows that a number moves, the timed rows, the taken values, and the file that keeps them."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import both_ways, extremes, moved_rows, moves, routes, suites, tune
from convgrad_cy import cpu
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.machine.tuning import TABLE, WIDE, by_processor

MACHINE = Machine(6, 256, 64, False, 32 << 20, threads=2)
#: Layers of several families.
LAYERS = "lenet_2|tiny_depthwise|maps_of_2_taps_7$|sincnet"
NAMES = [number.name for number in TABLE]


@pytest.fixture
def wide_vectors(monkeypatch):
    """Make plans for one fixed machine on every machine."""
    monkeypatch.setattr(cpu, "this_machine", lambda *count: MACHINE)


@pytest.fixture
def plans(wide_vectors):
    return [moves.Planned.of(routes.task_of(row)) for row in suites.rows(match=LAYERS)]


@pytest.mark.parametrize(
    "value, factor, expected",
    (
        (100, 0.7, 70),
        (100, 1.4, 140),
        (1, 0.7, 2),
        (1, 1.4, 2),
        (2, 0.7, 1),
        (2, 1.4, 3),
        (0.5, 0.7, 0.35),
        (2.0, 1.4, 2.8),
    ),
)
def test_another_value_is_another(value, factor, expected):
    """A multiple has the type of the value and is positive."""
    found = moves.varied(value, factor)
    assert found == pytest.approx(expected) and type(found) is type(value)


@pytest.mark.parametrize("number", TABLE, ids=lambda number: number.name)
def test_all_values_vary(number):
    for value in (number.wide, number.narrow):
        for factor in moved_rows.FACTORS:
            assert moves.varied(value, factor) != value and moves.varied(value, factor) > 0


@pytest.mark.parametrize("name", NAMES)
def test_no_move_is_missed(name, plans):
    """Noting numbers changes no plan, and a number that a plan did not read does not move it."""
    for plan in plans:
        assert moves.planned(plan.task) == plan.signature
        other = moves.planned(moves.with_number(plan.task, name, 0.7))
        assert plan.moved(name, 0.7) == (None if other == plan.signature else other)


def test_numbers_that_a_plan_reads_are_noted(plans):
    assert all({"serial_products", "most_reached_taps"} & plan.asked for plan in plans)
    assert any("across_cycles" in plan.asked for plan in plans) and any(
        "span_bytes" not in plan.asked for plan in plans
    )


def test_a_failing_plan_is_another_plan(plans):
    broken = plans[0].task._replace(dtype=None)
    assert "Error: " in moves.planned(broken) and moves.planned(broken) != plans[0].signature


def test_rows_are_chosen_evenly():
    assert tune.chosen(range(10), 20) == [*range(10)]
    assert tune.chosen(range(100), 4) == [0, 25, 50, 75]
    assert tune.chosen({3: 0, 5: 0}, 1) == [3]


def made_up(number, factor, *places):
    return tune.Move(number, factor, factor, dict.fromkeys(places, (number, factor)))


class Clock:
    """A replacement of ``timed`` with made-up seconds; ``gains``: of each plan, for each measurement."""

    def __init__(self, *gains):
        self.gains, self.asked = list(gains), []

    def __call__(self, wanted, rows, plans, options):
        gains = self.gains.pop(0)
        self.asked.append([(move.number, move.factor, places) for move, places in wanted])
        keys = [(place, move.plans[place]) for move, places in wanted for place in places]
        return {key: self.row(gains[key[1]]) for key in keys}

    def row(self, gain):
        return {"wrong": "it is"} if gain is None else {"seconds": 1.0, "other_seconds": 1 / gain}


def options_of(*argv):
    return tune.arguments([*argv])


def test_a_value_is_taken_that_is_faster_twice(monkeypatch):
    """The better one of two faster values is taken; a value that was faster only once or has a wrong result is not."""
    every = [made_up(name, factor, *places) for name in "abcd" for factor, places in ((0.7, (0, 1)), (1.4, (2,)))]
    every.append(made_up("e", 0.7))
    first = {("a", 0.7): 1.1, ("a", 1.4): 1.05, ("b", 0.7): 1.2, ("b", 1.4): 0.9, ("c", 0.7): 1.02, ("c", 1.4): 1.0}
    again = {("a", 0.7): 1.03, ("a", 1.4): 1.04, ("b", 0.7): 1.01}
    clock = Clock({**first, ("d", 0.7): None, ("d", 1.4): 1.0}, again)
    monkeypatch.setattr(tune, "timed", clock)
    rows = suites.rows(("tiny",))
    gains, taken, troubles = tune.measured(every, rows, None, options_of())
    assert taken == {"a": 1.4} and len(troubles) == 2 and troubles[0].endswith(": it is")
    assert gains["a", 0.7] == pytest.approx(1.03) and gains["b", 0.7] == pytest.approx(1.01) and gains["d", 0.7] is None
    assert ("e", 0.7, []) not in clock.asked[0] and len(clock.asked[0]) == 8
    assert [asked[:2] for asked in clock.asked[1]] == [("a", 0.7), ("a", 1.4), ("b", 0.7)]
    words = {name: tune.verdict(name, [move for move in every if move.number == name], taken) for name in "ace"}
    assert words == {"a": "take 1.4", "c": "keep", "e": "moves no row"}


def test_each_plan_is_timed_once(monkeypatch, plans):
    """Two numbers that make the same plan of a row share its time; both plans are plans of this row."""
    rows, compared = suites.rows(match=LAYERS), []

    def noted(row, tensors, usual, other, seconds):
        assert tensors.case.name == row.case.name and seconds == 0.25
        compared.append((row, moves.planned(usual.task), moves.planned(other.task)))
        return {"seconds": 2.0, "other_seconds": 1.0}

    monkeypatch.setattr(both_ways, "compared", noted)
    every = tune.planned_moves(plans, ["across_cycles", "box_positions"])
    wanted = [(move, list(move.plans)) for move in every]
    found = tune.timed(wanted + wanted, rows, plans, options_of("--seconds=0.25"))
    keys = {(place, plan) for move in every for place, plan in move.plans.items()}
    assert keys and {*found} == keys and len(compared) == len(keys)
    assert {(row, usual) for row, usual, _ in compared} == {(rows[place], plans[place].signature) for place, _ in keys}
    assert {(row, other) for row, _, other in compared} == {(rows[place], plan) for place, plan in keys}


def test_values_are_kept_for_one_processor(tmp_path):
    """A later run adds its values; all other values stay."""
    path = tmp_path / "by_processor.py"
    path.write_text(Path(by_processor.__file__).read_text())
    mine, other = ("AuthenticAMD", 25, 17, 64), ("GenuineIntel", 6, 207, 64)
    values = tune.with_taken({other: {"wanted_tasks": 22}}, mine, {"box_positions": 358, "left_products": 0.574})
    tune.written(values, path)
    assert runpy.run_path(path)["VALUES"] == values and path.read_text().count("#:") == 1
    more = tune.with_taken(values, mine, {"left_products": 0.7, "wanted_tasks": 11})
    tune.written(more, path)
    assert runpy.run_path(path)["VALUES"] == {
        other: {"wanted_tasks": 22},
        mine: {"box_positions": 358, "left_products": 0.7, "wanted_tasks": 11},
    }
    assert tune.with_taken({}, mine, {}) == {}
    tune.written({}, path)
    assert path.read_text() == Path(by_processor.__file__).read_text() or by_processor.VALUES


def test_taken_values_are_written(monkeypatch, capsys):
    """The key is this processor and the width of its vectors. A run without a faster value changes nothing."""
    kept = []
    monkeypatch.setattr(tune, "written", kept.append)
    monkeypatch.setattr(tune, "processor", lambda: ("FakedVendor", 99, 7))
    monkeypatch.setattr(by_processor, "VALUES", {("Other", 1, 1, 64): {"box_positions": 2}})
    for taken in ({"box_positions": 358}, {}):
        monkeypatch.setattr(tune, "measured", lambda *arguments, taken=taken: ({}, taken, []))
        assert tune.main(["--write", "--match=tiny_lenet_1", "--only", "box_positions"]) == 0
        assert f"{len(taken)} values kept for ('FakedVendor', 99, 7, " in capsys.readouterr().out
    own = {("FakedVendor", 99, 7, cpu.this_machine().vector_bytes): {"box_positions": 358}}
    assert kept == [by_processor.VALUES | own, by_processor.VALUES]


def test_listing(wide_vectors, tmp_path, capsys):
    """The list has the counts of moved rows and their suites, and nothing is timed."""
    names = ["across_cycles", "span_bytes"]
    assert tune.main(["--list", f"--match={LAYERS}", f"--json={tmp_path / 'it.json'}", "--only", *names]) == 0
    first, second = json.loads((tmp_path / "it.json").read_text())["rows"]
    assert first["number"] == "across_cycles" and first["value"] == WIDE.across_cycles and second["suites"] == []
    rows = suites.rows(match=LAYERS)
    for value, count, gain in first["others"]:
        tasks = [routes.task_of(row) for row in rows]
        other = WIDE._replace(across_cycles=value)
        assert gain is None
        assert count == sum(moves.planned(task) != moves.planned(moves.with_tuning(task, other)) for task in tasks)
    printed = capsys.readouterr().out
    assert f"{len(rows)} rows" in printed and "1 of 2 numbers move no row" in printed


def test_no_rows(capsys):
    assert tune.main(["--match=no_such_layer", "--only", "box_positions"]) == 0
    assert "1 of 1 numbers move no row" in capsys.readouterr().out


def test_timing(capsys):
    assert tune.main(["--match=tiny_lenet_2", "--only", "box_positions", "--seconds=0.001", "--rows=1"]) == 0
    assert capsys.readouterr().out.splitlines()[-3].startswith("box_positions")


def test_recorded_rows(tmp_path, monkeypatch, capsys):
    """The file has a row for each number that moves one; the command fails if a number moves none."""
    layers = [layer for layer in suites.LAYERS if layer.name in ("tiny_lenet_1", "tiny_depthwise")]
    monkeypatch.setattr(suites, "LAYERS", layers)
    monkeypatch.setattr(moved_rows, "odd_layers_of", lambda count, seed: [])
    path = tmp_path / "moved.txt"
    assert tune.main([f"--record={path}", "--only", "across_cycles", "box_positions", "span_bytes"]) == 1
    assert "2 of 3 numbers move a row: none by span_bytes" in capsys.readouterr().out
    found = moved_rows.read(path)
    assert [*found] == ["across_cycles", "box_positions"] and all(moved.is_moved() for moved in found.values())
    assert all(moved_rows.Moved.parse(str(moved)) == moved for moved in found.values())
    stale = found["across_cycles"]._replace(number="span_bytes")
    assert not stale.is_moved()
    # In a second run, rows that still move stay, and the search covers the other numbers only.
    path.write_text(f"{found['across_cycles']}\n{stale._replace(number='box_positions', factor=1.0)}\n")
    searched = []
    search = moved_rows.search
    monkeypatch.setattr(moved_rows, "search", lambda names, *rest: searched.append([*names]) or search(names, *rest))
    assert tune.main([f"--record={path}", "--only", "across_cycles", "box_positions"]) == 0
    assert moved_rows.read(path) == found and searched[0] == ["box_positions"]


def test_no_other_library_is_imported():
    code = "import sys; from bench import tune; print({*sys.modules} & {'torch', 'jax', 'cupy', 'scipy', 'pandas'})"
    child = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert child.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "argv, message",
    (
        (["--only", "nothing"], "invalid choice: 'nothing'"),
        (["--rows=0"], "--threads and --rows must be at least 1"),
        (["--write", "--list"], "--write needs"),
        (["--sets=nothing"], "'nothing' is none of"),
    ),
)
def test_arguments(argv, message, capsys):
    with pytest.raises(SystemExit):
        tune.arguments(argv)
    assert message in capsys.readouterr().err
    assert set(extremes.SETS) >= set(options_of("--sets=random,tiny").sets)
