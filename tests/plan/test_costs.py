"""The model of time that chooses an algorithm: its counts, and the fit of its costs."""

import sys
from pathlib import Path

import numpy as np
import pytest
from test_algorithm import MACHINES, problem_of

from convgrad_cy.cpu.machine.tuning import NARROW, WIDE
from convgrad_cy.cpu.winograd import costs, tilings
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd.work import tiled_work
from convgrad_cy.problem import DGRAD, FPROP, WGRAD

CUBES = tilings.TILINGS[2]  # six points on each axis for three taps


@pytest.mark.tuning
def test_kept_tiles_count_once():
    """In wgrad, transformed tiles must count once if they are kept for many blocks."""
    small, large = (problem_of(1, 1, channels, 128, (16, 16, 16), (3, 3, 3)) for channels in (128, 1024))
    assert winograd.choose(WGRAD, small, CUBES, MACHINES[0].tile).chosen.tiles_kept
    assert tiled_work(WGRAD, small, CUBES, MACHINES[0].tile)["wgrad value"] == 6**3 * 4**3 * (128 + 128)
    again = winograd.choose(WGRAD, large, CUBES, MACHINES[0].tile).chosen
    assert not again.tiles_kept
    work = tiled_work(WGRAD, large, CUBES, MACHINES[0].tile)["wgrad value"]
    assert work == 6**3 * 4**3 * (1024 * -(-128 // again.outputs) + 128 * -(-1024 // again.chunk))


@pytest.mark.tuning
@pytest.mark.parametrize("channels", (256, 512))
def test_vectors_of_a_line_have_larger_boxes(channels):
    """Vectors of a cache line must have boxes with more sums than narrower ones, with kept filters or tasks' own."""
    problem = problem_of(8, 1, channels, channels, (1, 25, 25), (1, 3, 3))
    wide, narrow = (winograd.choose(FPROP, problem, tilings.TILINGS[3], machine.tile) for machine in MACHINES[:2])
    sums = [4 * 7 * 7 * made.tiles * made.chosen.outputs for made in (wide, narrow)]
    assert sums[1] <= NARROW.tile_sums_bytes < sums[0] <= WIDE.tile_sums_bytes


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("operation", "size", "kernel", "stride", "machine", "chunk"),
    (
        (DGRAD, 8, 4, 2, 0, 128),
        (FPROP, 8, 4, 2, 0, 64),  # four walks are added: a chunk has four times the filters
        (DGRAD, 14, 3, 1, 0, 64),  # 49 points instead of 25
        (DGRAD, 8, 4, 2, 1, 64),
    ),
)
def test_chunks_whose_filters_stay_in_the_cache(operation, size, kernel, stride, machine, chunk):
    """Chunks must double if tasks transform their filters, vectors are lines, and the filters stay in the L2 cache."""
    problem = problem_of(16, 1, 256, 512, (1, size, size), (1, kernel, kernel), (1, stride, stride))
    made = winograd.choose(operation, problem, tilings.TILINGS[3], MACHINES[machine].tile)
    assert made.chosen.filters_kept == 0 and made.chosen.chunk == chunk


def test_fit(monkeypatch, capsys):
    """bench/fit_algorithm.py must measure both algorithms, fit no negative costs, and leave all as it was."""
    sys.path.append(str(Path(__file__).parents[2]))
    from bench import fit_algorithm

    kept = tilings.TILINGS
    monkeypatch.setattr(fit_algorithm, "SECONDS", 0)
    monkeypatch.setattr(fit_algorithm, "ROUNDS", 1)
    monkeypatch.setattr(fit_algorithm, "MOST_PRODUCTS", 4e7)
    found = list(fit_algorithm.measured(["inference"]))
    assert found and all(None in times for *_, times in found) and max(len(times) for *_, times in found) > 1
    made = fit_algorithm.fit(found)
    assert set(made) <= set(costs.NARROW.each) == set(costs.WIDE.each) and min(made.values()) >= 0
    fit_algorithm.judge(found)
    assert "of the best choices' time" in capsys.readouterr().out
    assert kept is tilings.TILINGS


def test_fit_finds_costs():
    """The fit must find the costs of work that takes their sum, with one disturbed sample."""
    sys.path.append(str(Path(__file__).parents[2]))
    from bench import fit_algorithm

    random = np.random.default_rng(0)
    work = [dict(zip("ab", random.uniform(1e6, 1e9, 2), strict=True)) for _ in range(40)]
    samples = [(each, (0.3 * each["a"] + 0.1 * each["b"]) * 1e-9) for each in work]
    samples[0] = samples[0][0], 5 * samples[0][1]
    assert fit_algorithm.fitted(samples, ("a", "b")) == pytest.approx({"a": 0.3, "b": 0.1}, rel=1e-2)
