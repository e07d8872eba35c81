"""Settings that change while a call is planned: it ends as it began, and no later call has its plan."""

import sys

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy import _repeat, calls, cpu
from convgrad_cy.calls import prepared
from convgrad_cy.cpu.machine import kernels
from convgrad_cy.memo.bounded import Bounded
from convgrad_cy.settings import scratch, threads

random = np.random.default_rng(0)
#: A layer that "auto" computes by Winograd's algorithm, with other bits than direct.
X, W = random.standard_normal((1, 64, 30, 30), np.float32), random.standard_normal((64, 64, 3, 3), np.float32)
Y = random.standard_normal((1, 64, 28, 28), np.float32)

CALLS = {
    "conv": lambda **k: cg.conv(X, W, **k).tobytes(),
    "conv_backward_data": lambda **k: cg.conv_backward_data(Y, W, X.shape, **k).tobytes(),
    "conv_backward": lambda **k: [each.tobytes() for each in cg.conv_backward(Y, X, W, **k)],
}
#: Functions that run while a call is planned. The first one runs before a setting is read.
MOMENTS = {
    "it is checked": (calls, "checked"),
    "the machine is asked": (cpu, "this_machine"),
    "a part is planned": (prepared, "prepare"),
    "it is planned": (calls, "on_cpu"),
}
#: The changes, and the function that a call then computes.
CHANGES = {
    "algorithm": (lambda: cg.set_default_algorithm("direct"), lambda call: call(algorithm="direct")),
    "scratch limit": (lambda: cg.set_scratch_limit(0), lambda call: call(algorithm="auto")),
}


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    yield
    cg.set_default_algorithm("auto")
    cg.set_scratch_limit(None)
    cg.set_num_threads(None)


def changing(monkeypatch, owner, name, change, after):
    """Let a function change something once, when it is called or after it has ended."""
    function, changes = getattr(owner, name), [change]

    def changed(*arguments):
        if changes and not after:
            changes.pop()()
        result = function(*arguments)
        if changes:
            changes.pop()()
        return result

    monkeypatch.setattr(owner, name, changed)


@pytest.mark.parametrize("after", (False, True), ids=("before", "after"))
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", CALLS)
def test_no_plan_of_an_old_setting_is_kept(name, change, moment, after, monkeypatch):
    """Each part of the call that is being planned must have the bits of the old setting or of the new one."""
    (do, new), call = CHANGES[change], CALLS[name]
    possible = [call(algorithm="auto"), call(algorithm="direct")]
    do()
    expected = new(call)
    cg.set_default_algorithm("auto")
    cg.set_scratch_limit(None)
    changing(monkeypatch, *MOMENTS[moment], do, after)
    found = call()
    if name == "conv_backward":
        assert all(each in of_part for each, *of_part in zip(found, *possible, expected, strict=True))
    else:
        assert found in [*possible, expected]
    assert call() == expected, "the next call"
    assert call() == expected, "a call like an earlier one"


@pytest.mark.skipif(not _repeat.has_openmp(), reason="built without OpenMP: there is one thread")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", CALLS)
def test_a_plan_is_for_the_threads_of_its_key(name, moment, monkeypatch):
    """A plan must be for the threads of its key, also if their number changes between the key and the plan."""
    planned, machine = [], kernels._machine
    monkeypatch.setattr(kernels, "_machine", lambda count, limit: planned.append(count) or machine(count, limit))
    changing(monkeypatch, *MOMENTS[moment], lambda: cg.set_num_threads(1), False)
    for number, expected in ((3, {3}), (3, set()), (1, {1}), (1, set()), (3, set())):
        cg.set_num_threads(number)
        planned.clear()
        CALLS[name](algorithm="direct")
        assert set(planned) == expected


def problems():
    """A call for each family, and for each operation of the last family."""
    ones = lambda *shape: np.ones(shape, np.float32)  # noqa: E731
    x, w = ones(4, 64, 30, 30), ones(64, 64, 3, 3)
    yield lambda: cg.conv(x, w)
    yield lambda: cg.conv(x, w, algorithm="direct")
    yield lambda: cg.conv_backward_filter(x, ones(4, 64, 28, 28), w.shape, algorithm="direct")
    yield lambda: cg.conv(x, ones(64, 1, 3, 3), groups=64)
    yield lambda: cg.conv_backward_data(ones(4, 96, 8, 8), ones(96, 3, 8, 8), (4, 3, 64, 64), stride=8)
    yield lambda: cg.conv_backward_data(ones(4, 96, 16, 16), ones(96, 3, 8, 8), (4, 3, 68, 68), stride=4)
    yield lambda: cg.conv_backward_data(ones(1, 8, 201, 4), ones(8, 8, 200, 3), (1, 8, 400, 6))
    yield lambda: cg.conv(ones(1, 64, 12, 12), ones(64, 64, 10, 10))
    yield lambda: cg.conv(ones(1, 1024, 20, 20), ones(2, 1024, 8, 8))


def forget_plans():
    """Forget all parts of plans."""
    for name, module in sys.modules.items():
        if name.startswith("convgrad_cy."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def test_a_setting_is_read_once(monkeypatch):
    """A plan must depend on its task only: the caches of parts of plans have no setting in their keys."""
    taken = set()
    pipeline = cpu.families.pipeline

    def alone(task, families=cpu.families.PREFERENCE):
        taken.add(cpu.families.name_of(cpu.families.chosen(task, families)[1]))
        with monkeypatch.context() as inner:
            for owner, name in ((kernels, "threads"), (kernels, "get_scratch_limit"), (threads, "_number_here")):
                inner.setattr(owner, name, None)
            inner.setattr(scratch, "_limit", "no number")
            return pipeline(task, families)

    monkeypatch.setattr(cpu.families, "pipeline", alone)
    forget_plans()
    for call in problems():
        call()
    assert taken == set(map(cpu.families.name_of, cpu.families.PREFERENCE))
