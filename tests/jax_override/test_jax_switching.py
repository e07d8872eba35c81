"""enable(), disable() and enabled(): the kernels that compute a convolution before, within and after."""

import threading

import pytest

pytest.importorskip("jax", minversion="0.7")

import jax
import numpy as np

import convgrad_cy as cg
import convgrad_cy.jax as override

pytestmark = pytest.mark.jax

RNG = np.random.default_rng(0)
X, W = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((2, 32, 20, 20), (32, 32, 3, 3)))
COMPILED = jax.jit(lambda x, w: jax.lax.conv(x, w, (1, 1), "VALID"))
OURS = {algorithm: cg.conv(X, W, algorithm=algorithm) for algorithm in ("auto", "direct")}


def owner():
    """The library that computes a function that was jitted once for all tests, by the bits of its result."""
    found = np.asarray(COMPILED(X, W))
    same = [algorithm for algorithm, result in OURS.items() if np.array_equal(found, result)]
    return same[0] if same else "XLA"


@pytest.fixture(autouse=True)
def algorithms_differ():
    assert not np.array_equal(OURS["auto"], OURS["direct"])
    yield
    cg.set_default_algorithm("auto")


def test_enable_and_disable():
    assert owner() == "XLA" and not override.is_enabled()
    of_xla = np.asarray(COMPILED(X, W))
    for _ in range(2):
        assert override.enable() is None
        assert owner() == "auto" and override.is_enabled() and override.status().enabled
        assert override.disable() is None
        assert owner() == "XLA" and not override.is_enabled() and not override.status().enabled
    np.testing.assert_array_equal(np.asarray(COMPILED(X, W)), of_xla)


def test_algorithms():
    override.enable("direct")
    assert (owner(), override.status().algorithm) == ("direct", "direct")
    override.enable("auto")
    assert (owner(), override.status().algorithm) == ("auto", "auto")
    with override.enabled("direct"):
        assert owner() == "direct"
        with override.enabled():
            assert owner() == "direct"
    assert owner() == "auto"


def test_the_default_algorithm():
    """The default algorithm must count when a convolution is computed, so nothing is compiled again."""
    override.enable()
    assert owner() == "auto"
    cg.set_default_algorithm("direct")
    assert (owner(), override.status().algorithm) == ("direct", "direct")


@pytest.mark.parametrize("algorithm, error", [("winograd", ValueError), (1, TypeError)])
def test_refused_algorithms(algorithm, error):
    with pytest.raises(error, match="algorithm must be"):
        override.enable(algorithm)
    with pytest.raises(error, match="algorithm must be"), override.enabled(algorithm):
        pass
    assert not override.is_enabled()


def test_blocks():
    with override.enabled():
        with override.enabled():
            assert owner() == "auto"
        assert owner() == "auto"
        override.enable()
    assert owner() == "auto"
    override.disable()
    assert owner() == "XLA"


def test_an_error_leaves_a_block():
    with pytest.raises(KeyboardInterrupt), override.enabled():
        raise KeyboardInterrupt
    assert owner() == "XLA"


def test_disable_in_a_block():
    with override.enabled():
        override.disable()
        assert owner() == "XLA"
    assert owner() == "XLA"


def test_threads_that_switch_while_others_compute():
    """Each result must be one of the three possible ones, and no thread may fail."""
    of_xla, stop, found, failed = np.asarray(COMPILED(X, W)), threading.Event(), set(), []

    def compute():
        try:
            while not stop.is_set():
                result = np.asarray(COMPILED(X, W))
                known = [*OURS.items(), ("XLA", of_xla)]
                found.add(next((name for name, one in known if np.array_equal(result, one)), "something else"))
        except Exception as error:  # any error fails the test
            failed.append(error)

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(12):
        override.enable("direct" if i % 3 else "auto")
        if i % 4 == 3:
            override.disable()
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == [] and found <= {"auto", "direct", "XLA"}
