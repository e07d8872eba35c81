"""Random and extreme geometries through all planners of the CPU: they give a plan soon, or a documented exception."""

from collections import Counter
from functools import partial
from random import Random
from time import thread_time
from traceback import format_exception

import pytest
from drawn_geometries import draw

import convgrad_cy as cg
from convgrad_cy import cpu
from convgrad_cy.cpu import families
from convgrad_cy.cpu.direct.plan import plan as plan_of_direct
from convgrad_cy.cpu.plan.walks import walks_of
from convgrad_cy.cpu.rewrites.reached import without_unreached_taps
from convgrad_cy.cpu.small_groups.plan import outline_or_reason
from convgrad_cy.cpu.small_groups.plan import plan as plan_of_groups
from convgrad_cy.cpu.winograd.plan import choose
from convgrad_cy.cpu.winograd.tilings import decide
from convgrad_cy.cpu.winograd.walks import tile_walks

#: Number of tests that share the geometries and run at the same time.
PARTS, FEW, ALL = 4, 2_000, 100_000
SEED = 53
DOCUMENTED = TypeError, ValueError, MemoryError
#: Seconds that a plan takes at most. ``explain`` documents the additional time for each stride phase of a data
#: gradient, and for each tap of a filter gradient.
MOST_SECONDS, SECONDS_OF_PHASE, SECONDS_OF_TAP = 0.05, 5e-6, 20e-9
CACHES = plan_of_direct, plan_of_groups, outline_or_reason, walks_of, choose, decide, tile_walks


class Planner:
    """Plans the drawn geometries and counts the outcomes."""

    def __init__(self, patch):
        self.counts, self.wrong, self.patch = Counter(), [], patch
        self.machine, self.explained, self.task = cpu.this_machine(), cpu.explained, None
        patch.setattr(cpu, "explained", self._explained)

    def _explained(self, task):
        self.task = task
        return self.explained(task)

    def plan(self, number):
        """Plan a geometry in every way. If an algorithm cannot compute it, plan it by the others."""
        drawn = draw(Random(f"{SEED} {number}"))
        here = self.machine._replace(**drawn.machine)
        self.patch.setattr(cpu, "this_machine", lambda *count: here)
        self.task = None
        try:
            said = self._soon(number, drawn, partial(self._said, drawn))
            if said.startswith("algorithm must be"):
                drawn = drawn._replace(keywords={**drawn.keywords, "algorithm": "auto"})
                said = self._soon(number, drawn, partial(self._said, drawn))
            self.counts[said if said in _NAMES else "refused"] += 1
            if said in _NAMES and self.task is not None:  # there is none if the result is empty
                self._soon(number, drawn, self._prepared)
                self._every_family()
        except Exception as error:
            self.wrong.append(f"{number}: {drawn}\n{''.join(format_exception(error))}")

    def _said(self, drawn):
        """The name of the family that computes a geometry, or its refusal."""
        try:
            found = cg.explain(drawn.function, drawn.shapes, drawn.dtype, **drawn.keywords)
        except DOCUMENTED as error:
            return str(error)
        assert str(found)
        return str(found.family)

    def _prepared(self):
        *what, _ = self.task
        cpu.prepare(*what)

    def _every_family(self):
        """The plans of all families that could compute the geometry if they were asked first."""
        if not self.task.problem.has_products:
            return
        task = without_unreached_taps(self.task)
        for number, family in enumerate(families.PREFERENCE, 1):
            reason = family.refusal(task)
            assert reason is None or str(reason)
            if reason is None:
                rest = partial(families.pipeline, families=families.PREFERENCE[number:])
                try:
                    assert family.pipeline(task, rest).details({})
                except ValueError as error:  # another family computes problems with too many phases for this one
                    assert str(error).startswith("stride must have at most")

    def _soon(self, number, drawn, function):
        """The result of a function that has to return soon. On a busy machine it has a second try."""
        seconds = []
        for _ in range(2):
            for cached in CACHES:
                cached.cache_clear()
            begin = thread_time()
            result = function()
            seconds.append(thread_time() - begin)
            if seconds[-1] < MOST_SECONDS:
                return result
        if min(seconds) > MOST_SECONDS + SECONDS_OF_PHASE * drawn.phases + SECONDS_OF_TAP * drawn.taps:
            self.wrong.append(f"{number} takes {min(seconds):.3f} s: {drawn}")
        return result


_NAMES = {"None", *map(families.name_of, families.PREFERENCE)}


def planned(numbers, patch):
    """The counts of drawn geometries. Any wrong one fails."""
    planner = Planner(patch)
    for number in numbers:
        planner.plan(number)
    assert planner.wrong == [], "\n".join([f"{len(planner.wrong)} are wrong", *planner.wrong[:5]])
    return planner.counts


@pytest.mark.parametrize("part", range(PARTS))
def test_some(part, monkeypatch):
    counts = planned(range(part, FEW, PARTS), monkeypatch)
    assert counts["refused"] < sum(counts.values()) / 20
    assert all(counts[name] for name in ("None", "direct", "winograd", "small_groups", "exchanged"))


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("part", range(PARTS))
def test_all(part, monkeypatch):
    counts = planned(range(FEW + part, ALL, PARTS), monkeypatch)
    assert set(counts) == {"refused", *_NAMES}
