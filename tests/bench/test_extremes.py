"""Layers that no network has: how they are drawn, and which of their rows stand out."""

import sys
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import extremes, odd_layers, results
from bench.peers import OURS


def layers(*argv):
    _, options = extremes.arguments(argv)
    return extremes.layers_of(options)


def test_random_geometries():
    """Equal seeds must draw equal layers, other seeds other ones, within the bounds and of every kind."""
    found = layers("--sets", "random", "--count", "300")
    assert [layer.line for layer in found[:20]] == [layer.line for layer in layers("--sets", "random", "--count", "20")]
    other = layers("--sets", "random", "--count", "20", "--seed", "1")
    assert not {str(layer.problem.x) for layer in other} <= {str(layer.problem.x) for layer in found[:20]}
    problems = [layer.problem for layer in found]
    assert len(problems) == 300
    for layer in found:
        problem = layer.problem
        shapes = problem.x_shape, problem.w_shape, problem.y_shape
        assert all(prod(shape) <= odd_layers.MOST_ELEMENTS for shape in shapes)
        assert layer.case("NCX", "float32").flop <= odd_layers.MOST_FLOP
        assert max(problem.kernel) <= odd_layers.TAPS and max(problem.y) <= odd_layers.POSITIONS
    assert {len(problem.x) for problem in problems} == {1, 2, 3}
    for values in (
        [problem.groups > 1 for problem in problems],
        [max(problem.stride) > 1 for problem in problems],
        [max(problem.dilation) > 1 for problem in problems],
        [max(problem.padding)[0] > 0 for problem in problems],
        [prod(problem.kernel) > prod(problem.y) for problem in problems],
        [layer.transposed for layer in found],
    ):
        assert set(values) == {False, True}


def test_curves():
    """Curves must have three to some hundred taps, one to all positions, and no large step between points."""
    for name, at, first, most, size in (
        ("taps", 2, 3, odd_layers.TAPS, lambda layer: layer.problem.kernel[0]),
        ("positions", 3, 1, odd_layers.POSITIONS, lambda layer: layer.problem.y[0]),
    ):
        points = [layer for layer in layers("--sets", name) if layer.name.startswith(f"{name}_1_1_4_4_at_{at}_of")]
        sizes = [size(layer) for layer in points]
        assert sizes[0] == first and most / odd_layers.GROWTH <= sizes[-1] <= most
        assert all(before < after <= max(before + 1, odd_layers.GROWTH * before) for before, after in pairwise(sizes))


def row(layer, ours, peer, flop=1e6, suite="taps"):
    results = {OURS: {"seconds": ours}, "torch": {"seconds": peer}}
    return {"suite": suite, "layer": layer, "kernel": "dgrad", "layout": "NCX", "dtype": "float32", "flop": flop,
            "results": results}  # fmt: skip


def test_what_stands_out():
    rows = [
        row("taps_a_at_2_of_3", 1e-3, 2e-3),
        row("taps_a_at_2_of_4", 2e-3, 2e-3, flop=2e6),  # as large as its work
        row("taps_a_at_2_of_5", 4e-3, 1.2e-3, flop=2.5e6),  # a step, and slower than a third
        row("taps_b_at_2_of_3", 1.0, 2.0),  # another curve
        row("random_0_1", 1.0, 0.5, suite="random"),
        row("random_0_2", 50.0, 100.0, suite="random"),
    ]
    steps = extremes.steps(rows)
    assert [value for value, _ in steps] == pytest.approx([1.6, 1.0]) and steps[0][1] is rows[2]
    lines = extremes.conclusion({"rows": rows})
    assert [line.split()[0] for line in lines[1:4]] == ["0.30", "0.50", "1.60"]
    assert lines[3].split()[2:] == ["step", "taps_a_at_2_of_5", "dgrad", "NCX", "float32"]
    assert lines[4:] == ["6 ratios, 1 below 1/3, 2 below 0.95", "2 pairs of neighbours, 1 above 1.5"]


@pytest.mark.parametrize("processes", (1, 2))
def test_command(processes, tmp_path, capsys):
    """A small run must be verified, timed, printed and kept, in the order of the layers."""
    if processes > len(extremes.processors()):
        pytest.skip("needs two processors")
    path = tmp_path / "extremes.json"
    argv = ["--sets=random", "--count=3", "--op=dgrad", "--layout=NCX", "--peers=", "--seconds=0.001", "--json", path]
    assert extremes.main([*map(str, argv), f"--processes={processes}"]) == 0
    assert "0 ratios, 0 below 1/3, 0 below 0.95\n0 pairs of neighbours" in capsys.readouterr().out
    data = results.read(path)
    assert [row["layer"] for row in data["rows"]] == [f"random_0_{i}" for i in range(3)] and len(data["layers"]) == 4


def test_too_many_processes(capsys):
    with pytest.raises(SystemExit):
        extremes.arguments(["--processes", "100000"])
    assert "--processes times --threads must be 1 to" in capsys.readouterr().err
