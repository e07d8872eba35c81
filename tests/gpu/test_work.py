"""How plans are joined and carried out, seen from what is launched."""

import fake_cupy
import pytest

from convgrad_cy.gpu import work
from convgrad_cy.gpu.joined import joined
from convgrad_cy.gpu.plan import WORKSPACE, Launch, Plan


def launch(kernel, *pointers, shared=0, macros=()):
    return Launch("some.cu", macros, kernel, (1, 2, 3), (32, 1, 1), shared, pointers, (1, -2, 3))


class Recorder:
    """In the place of a compiled kernel."""

    def __init__(self):
        self.max_dynamic_shared_size_bytes = 48 << 10
        self.calls = []

    def __call__(self, grid, block, args, shared_mem):
        self.calls.append((grid, block, [getattr(arg, "ptr", arg) for arg in args[:-1]], args[-1], shared_mem))


@pytest.fixture
def kernels(monkeypatch):
    fake_cupy.install(monkeypatch)
    made = {}
    monkeypatch.setattr(work, "_function", lambda source, macros, name, device: made.setdefault(name, Recorder()))
    return made


def test_operands_and_workspaces_get_the_numbers_of_the_call():
    plan = Plan((launch("a", 0, WORKSPACE + 1), launch("b", WORKSPACE + 1, 1, WORKSPACE, 2)), (10, 20, 30))
    assert joined([(plan, (5, 4, 3))], 6) == Plan((launch("a", 5, 6), launch("b", 6, 4, 7, 3)), (20, 10))


def test_what_two_plans_pack_in_the_same_way_is_packed_once():
    first = Plan((launch("pack", 0, WORKSPACE), launch("one", WORKSPACE, 1, 2)), (10,))
    second = Plan(
        (launch("pack", 0, WORKSPACE), launch("pack", 2, WORKSPACE + 1), launch("two", WORKSPACE, WORKSPACE + 1, 1)),
        (40, 10),
    )
    whole = joined([(first, (0, 2, 3)), (second, (1, 4, 0))], 5)
    assert whole.launches == (
        launch("pack", 0, 5),
        launch("one", 5, 2, 3),
        launch("pack", 1, 6),
        launch("two", 6, 5, 4),
    )
    assert whole.workspaces == (10, 40)


def test_another_way_of_packing_is_not_shared():
    first = Plan((launch("pack", 0, WORKSPACE), launch("one", WORKSPACE, 1, 2)), (10,))
    second = Plan((launch("pack", 2, WORKSPACE, macros=(("A", "1"),)), launch("two", 0, WORKSPACE, 1)), (10,))
    whole = joined([(first, (0, 2, 3)), (second, (1, 4, 0))], 5)
    assert [made.kernel for made in whole.launches] == ["pack", "one", "pack", "two"]
    assert whole.workspaces == (10, 10)


def test_workspaces_do_not_share_memory(kernels):
    plan = Plan((launch("k", 0, WORKSPACE, WORKSPACE + 1, 2),), (1000, 24))
    made = work.Work([(plan, (0, 1, 2))], 3, 0)
    made.run("source", "filter", "target")
    ((grid, block, (source, one, other, target), arguments, shared),) = kernels["k"].calls
    assert (grid, block, shared, source, target) == ((1, 2, 3), (32, 1, 1), 0, "source", "target")
    assert one % 512 == 0 and other - one == 1024
    assert arguments.size == 1 and arguments.tobytes() == b"".join(
        n.to_bytes(8, "little", signed=True) for n in (1, -2, 3)
    )


def test_a_captured_call_keeps_its_workspaces(kernels, monkeypatch):
    """A graph uses them again, whenever it is launched."""
    made = work.Work([(Plan((launch("k", 0, WORKSPACE, 2),), (8,)), (0, 1, 2))], 3, 0)
    made.run(None, None, None)
    assert made._captured == []
    monkeypatch.setattr(fake_cupy, "capturing", [True])
    made.run(None, None, None)
    made.run(None, None, None)
    kept = {memory.ptr for memory in made._captured}
    assert kept == {call[2][1] for call in kernels["k"].calls[1:]} and len(kept) == 2


def test_much_shared_memory_is_asked_for(kernels):
    work.Work([(Plan((launch("k", 0, shared=48 << 10), launch("l", 0, shared=100 << 10))), (0, 1, 2))], 3, 0)
    assert kernels["k"].max_dynamic_shared_size_bytes == 48 << 10
    assert kernels["l"].max_dynamic_shared_size_bytes == 100 << 10
    work.Work([(Plan((launch("l", 0, shared=60 << 10),)), (0, 1, 2))], 3, 0)
    assert kernels["l"].max_dynamic_shared_size_bytes == 100 << 10, "the earlier work needs it still"
