"""The choice of the algorithm by the model."""

from dataclasses import replace

import pytest
from test_algorithm import FLOAT32, MACHINES, problem_of

from convgrad_cy import dtypes
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd import tilings, work
from convgrad_cy.problem import DGRAD, FPROP, WGRAD


@pytest.mark.tuning
def test_choices():
    """Large 3x3 layers must be chosen for Winograd's algorithm, and no others."""

    def tiled(operation, *sizes, dtype=FLOAT32):
        problem = problem_of(*sizes)
        return [tilings.tiling_of(operation, problem, dtype, False, machine.tile) is not None for machine in MACHINES]

    for operation in (FPROP, DGRAD, WGRAD):
        assert all(tiled(operation, 8, 1, 64, 64, (1, 56, 56), (1, 3, 3)))
        assert all(tiled(operation, 2, 1, 256, 256, (1, 28, 28), (1, 3, 3)))
        assert not any(tiled(operation, 8, 1, 64, 64, (1, 56, 56), (1, 1, 1)))
        assert not any(tiled(operation, 1, 1, 4, 4, (1, 8, 8), (1, 3, 3)))
        assert not any(tiled(operation, 8, 64, 1, 1, (1, 56, 56), (1, 3, 3)))
        # A pair of groups of eight channels fills a vector of 64 bytes. Without pairs, the tiles of wgrad are half
        # empty.
        eights = 8, 32, 8, 8, (1, 28, 28), (1, 3, 3)
        assert tiled(operation, *eights)[0] == (operation == WGRAD)
        split = MACHINES[0].tile._replace(splits_vectors=True)
        assert tilings.tiling_of(operation, problem_of(*eights), FLOAT32, False, split) is not None
        for row in dtypes.TABLE:
            chosen = tiled(operation, 8, 1, 64, 64, (1, 56, 56), (1, 3, 3), dtype=row)
            assert all(chosen) if row.compute == "float32" else not any(chosen)


@pytest.mark.tuning
@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
def test_choices_of_small_problems(operation):
    """Wide vectors must take tiles from 16 channels on if data stay in the caches, even for one image and one task."""
    tile = MACHINES[0].tile
    for batch, channels, extent in ((32, 16, 32), (4, 16, 62), (1, 64, 16), (1, 32, 24), (32, 64, 8)):
        problem = problem_of(batch, 1, channels, channels, (1, extent, extent), (1, 3, 3))
        assert tilings.tiling_of(operation, problem, FLOAT32, False, tile) is not None
    large = problem_of(512, 1, 16, 16, (1, 32, 32), (1, 3, 3))
    assert tilings.tiling_of(operation, large, FLOAT32, False, tile) is None


@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
def test_padding_is_left_out(operation):
    """The cost of direct sums must leave out padding in small problems, where it is much of the input of taps."""
    tile = MACHINES[0].tile
    own, large = (problem_of(batch, 1, 32, 32, (1, 4, 4), (1, 7, 7)) for batch in (8, 8000))
    inside = replace(own, x=(1, 10, 10), pad_begin=(0, 0, 0))
    name = "direct wgrad product" if operation == WGRAD else "direct product"
    padded, whole, many = (work.direct_work(operation, one, FLOAT32, tile)[name] for one in (own, inside, large))
    assert padded == pytest.approx(whole * (1 - work.LEFT_OUT * (1 - (16 / 28) ** 2)))
    assert many == pytest.approx(1000 * whole)


@pytest.mark.tuning
def test_one_task_is_cut_for_two_threads():
    """A single task must be cut if a thread would have nothing to do."""
    problem = problem_of(1, 1, 64, 64, (1, 16, 16), (1, 3, 3))
    for operation in (FPROP, DGRAD, WGRAD):
        tiling = tilings.tiling_of(operation, problem, FLOAT32, False, MACHINES[0].tile)
        assert winograd.choose(operation, problem, tiling, MACHINES[0].tile).tasks == 1
        one, two = (winograd.plan(operation, problem, tiling, MACHINES[0]._replace(threads=n)) for n in (1, 2))
        assert two.chosen.threads == 2
        assert two.chosen._replace(threads=1) != one.chosen or (one.steps != two.steps).any()


@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
def test_pairs_are_twice_as_fast(operation):
    """Direct sums of bfloat16 must count as twice as fast on a machine that multiplies pairs, and no others."""
    problem, tile = problem_of(8, 1, 64, 64, (1, 56, 56), (1, 3, 3)), MACHINES[0].tile
    pairs = tile._replace(multiplies_pairs=True)
    for row in dtypes.TABLE[:3]:
        tiling = tilings.decide(operation, problem, row, False, tile)
        plain, paired = (tilings.direct_seconds(operation, problem, row, one) for one in (tile, pairs))
        assert tiling.seconds[1] == plain
        assert 0.4 * plain < paired < 0.75 * plain if row.name == "bfloat16" else paired == plain


def test_pairs_leave_out_padding():
    """The cost of pairs of channels must leave out padding.

    In wgrad, pairs are positions; an odd row has a single one.
    """
    bfloat16, tile = dtypes.TABLE[1], MACHINES[0].tile
    problem = problem_of(8, 1, 512, 512, (1, 7, 7), (1, 3, 3))
    for operation, part in ((FPROP, (19 / 21) ** 2 / 2), (DGRAD, (19 / 21) ** 2 / 2), (WGRAD, 4 / 7)):
        plain, pairs = (
            work.direct_work(operation, problem, bfloat16, tile._replace(multiplies_pairs=pairs))
            for pairs in (False, True)
        )
        assert list(plain) == list(pairs)
        assert [pairs[name] / plain[name] for name in plain] == pytest.approx([part, 1])


@pytest.mark.tuning
def test_choices_beside_pairs():
    """On a machine with pairs, a layer that saves many products must be tiled, but not one that saves few."""
    tile = MACHINES[0].tile._replace(multiplies_pairs=True)
    bfloat16 = next(row for row in dtypes.TABLE if row.name == "bfloat16")
    for problem, kinds in (
        (problem_of(2, 1, 256, 256, (1, 56, 56), (1, 3, 3)), (FLOAT32, bfloat16)),
        (problem_of(2, 1, 64, 64, (1, 1, 4000), (1, 1, 3)), (FLOAT32,)),
    ):
        for row in (FLOAT32, bfloat16):
            assert (tilings.tiling_of(FPROP, problem, row, False, tile) is not None) == (row in kinds)
