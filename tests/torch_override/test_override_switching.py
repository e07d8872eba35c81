"""enable(), disable() and enabled(): the kernels that compute a call before, within and after."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch", minversion="2.9")


import convgrad_cy as cg  # noqa: E402
import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy import cpu  # noqa: E402

pytestmark = pytest.mark.torch

X, W = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
OPERATORS = ("_convolution", "convolution_backward")


def owners():
    """Whether each of the operators is ours now, judged by the counts."""
    x = X.clone().requires_grad_()
    before = override.status().computed
    torch.conv1d(x, W).sum().backward()
    after = override.status().computed
    return tuple(after[name] - before[name] for name in OPERATORS)


OURS, THEIRS = (1, 1), (0, 0)


def test_enable_and_disable():
    assert owners() == THEIRS and not override.is_enabled()
    for _ in range(2):
        for _ in range(2):
            assert override.enable() is None
            assert owners() == OURS and override.is_enabled() and override.status().enabled
        for _ in range(2):
            assert override.disable() is None
            assert owners() == THEIRS and not override.is_enabled() and not override.status().enabled


def test_calls_of_pytorchs_are_not_counted():
    """While we are disabled, calls must be counted neither as computed nor as passed on."""
    override.enable()
    override.disable()
    before = override.status()
    torch.conv1d(X.long(), W.long())
    assert owners() == THEIRS
    after = override.status()
    assert after.passed_on == before.passed_on and after.computed == before.computed


def test_kernels_stay_registered():
    """Kernels must stay registered: another registration or a removal is unsafe while other threads compute."""
    override.enable()
    library = override.switch._library
    override.disable()
    with override.enabled():
        pass
    assert override.switch._library is library is not None


def test_blocks():
    with override.enabled() as value:
        assert value is None and owners() == OURS
        with override.enabled():
            assert owners() == OURS
        assert owners() == OURS
    assert owners() == THEIRS


def test_one_block_twice():
    """A context manager must be for one block, and as a decorator for each call."""

    @override.enabled()
    def call(depth=0):
        return call(depth - 1) if depth else owners()

    assert call() == OURS and call(2) == OURS and owners() == THEIRS


def test_a_block_within_enable():
    override.enable()
    with override.enabled():
        assert owners() == OURS
    assert owners() == OURS


def test_enable_in_a_block():
    with override.enabled():
        override.enable()
    assert owners() == OURS


def test_disable_in_a_block():
    """disable() must hold for all requests, also for the blocks around, which must then end without effect."""
    with override.enabled():
        with override.enabled():
            override.disable()
            assert owners() == THEIRS
            with override.enabled():
                assert owners() == OURS
            assert owners() == THEIRS
        assert owners() == THEIRS
    assert owners() == THEIRS


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, GeneratorExit, SystemExit])
def test_an_error_leaves_a_block(error):
    with pytest.raises(error), override.enabled(), override.enabled():
        raise error
    assert owners() == THEIRS


def test_an_error_of_pytorchs_leaves_a_block():
    with pytest.raises(RuntimeError), override.enabled():
        torch.conv1d(X, torch.ones(1, 2, 2))
    assert owners() == THEIRS


def test_blocks_of_two_threads():
    """Overlapping blocks of two threads must switch back when the last one is left, whichever it is."""
    for first in (0, 1):
        inside, leave = threading.Barrier(3), [threading.Event(), threading.Event()]

        def hold(index, inside=inside, leave=leave):
            with override.enabled():
                inside.wait(60)
                assert leave[index].wait(60)

        threads = [threading.Thread(target=hold, args=[index]) for index in range(2)]
        for thread in threads:
            thread.start()
        inside.wait(60)
        assert owners() == OURS
        for index, expected in ((first, OURS), (1 - first, THEIRS)):
            leave[index].set()
            threads[index].join(60)
            assert owners() == expected


def test_many_threads_in_blocks_of_their_own():
    """All calls of four threads must be ours. One block is around theirs, so none of theirs is the first or last."""
    x, w = torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3)

    def work(_):
        for _ in range(100):
            with override.enabled():
                assert bool((torch.conv2d(x, w) == 27).all())
            assert bool((torch.conv2d(x, w) == 27).all())

    computed = override.status().computed["_convolution"]
    with ThreadPoolExecutor(4) as pool, override.enabled():
        list(pool.map(work, range(4), timeout=120))
    assert override.status().computed["_convolution"] == computed + 4 * 200
    assert owners() == THEIRS


def test_status():
    status = override.status()
    assert status.torch == torch.__version__ and status.isa == cpu.isa and status.threads == torch.get_num_threads()
    assert {name for name in status.computed if "CUDA" not in name} == {*OPERATORS}
    status.computed["_convolution"] += 1
    status.passed_on["no operator", "no reason"] = 1
    assert override.status().passed_on != status.passed_on  # a copy
    assert override.status().computed != status.computed


def test_algorithm():
    """The algorithm must be the last one asked for that is still in force, or the default of calls without one."""
    x, w = torch.randn(2, 64, 28, 28), torch.randn(64, 64, 3, 3)
    made = {name: cg.conv(x, w, padding=1, algorithm=name).numpy().tobytes() for name in ("auto", "direct")}
    assert made["auto"] != made["direct"]

    def used():
        result = torch.nn.functional.conv2d(x, w, padding=1).numpy().tobytes()
        assert result == made[override.status().algorithm]
        return override.status().algorithm

    with override.enabled():
        assert used() == "auto"
        with override.enabled(algorithm="direct"):
            assert used() == "direct"
            with override.enabled():
                assert used() == "direct"
            with override.enabled(algorithm="auto"):
                assert used() == "auto"
            assert used() == "direct"
        assert used() == "auto"
        try:
            cg.set_default_algorithm("direct")
            assert used() == "direct"
        finally:
            cg.set_default_algorithm("auto")
        assert used() == "auto"
    override.enable(algorithm="direct")
    assert used() == "direct"
    override.enable()
    assert used() == "auto"
    override.disable()
    with pytest.raises(ValueError, match="algorithm must be one of 'auto', 'direct', not 'winograd'"):
        override.enable(algorithm="winograd")
    assert not override.is_enabled()
