"""A long call is interruptible: a signal handler that raises stops it, in any kernel and with any threads."""

import signal
import threading
import time

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy.cpu.machine.kernels import compiled

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers that send signals")

UNTOUCHED = 12345.0


class Stop(Exception):
    """The exception that the handler raises."""


def random(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape, np.float32).astype(dtype)


def many(images, *shape, dtype=np.float32):
    """An array of ``images`` images that share the memory of one."""
    return np.broadcast_to(random(1, *shape, dtype=dtype), (images, *shape))


# Calls of a second or more on two fast cores: function, arrays, keywords, shape of the result. In calls that only read
# many images, all images share one place.
CALLS = {
    "fprop": (
        cg.conv, lambda: (random(4, 256, 64, 64, dtype=np.float64), random(256, 256, 9, 9, dtype=np.float64)),
        {"padding": 4}, (4, 256, 64, 64),
    ),
    "dgrad, all phases in a task": (
        cg.conv_backward_data, lambda: (random(1, 2048, 64, 64), random(2048, 64, 16, 16), (1, 64, 134, 134)),
        {"stride": 2, "padding": 4}, (1, 64, 134, 134),
    ),
    "wgrad": (
        cg.conv_backward_filter, lambda: (many(20000, 64, 28, 28), many(20000, 64, 28, 28), (64, 64, 3, 3)),
        {"padding": 1, "algorithm": "direct"}, (64, 64, 3, 3),
    ),
    "wgrad of one block": (
        cg.conv_backward_filter, lambda: (many(400000, 16, 28, 28), many(400000, 16, 28, 28), (16, 16, 1, 1)),
        {}, (16, 16, 1, 1),
    ),
    "Winograd's fprop": (
        cg.conv, lambda: (random(64, 512, 28, 28), random(512, 512, 3, 3)),
        {"padding": 1, "algorithm": "winograd"}, (64, 512, 28, 28),
    ),
    "Winograd's wgrad": (
        cg.conv_backward_filter, lambda: (many(20000, 64, 28, 28), many(20000, 64, 28, 28), (64, 64, 3, 3)),
        {"padding": 1, "algorithm": "winograd"}, (64, 64, 3, 3),
    ),
    "depthwise wgrad": (
        cg.conv_backward_filter, lambda: (many(100000, 64, 56, 56), many(100000, 64, 56, 56), (64, 1, 3, 3)),
        {"padding": 1, "groups": 64}, (64, 1, 3, 3),
    ),
}  # fmt: skip


@pytest.fixture
def timer():
    """Begin a timer. At its end, a handler raises."""

    def stop(number, frame):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", CALLS)
def test_a_long_call_stops_where_a_handler_raises(name, threads, timer):
    function, made, keywords, shape = CALLS[name]
    arrays = made()
    out = np.full(shape, UNTOUCHED, arrays[0].dtype)
    with cg.num_threads(threads), pytest.raises(Stop):
        timer(0.1)
        function(*arrays, **keywords, out=out)
        pytest.fail("the call ended before the timer, or did not listen")
    assert (out == UNTOUCHED).any(), "the call computed to its end before the handler was heard"
    np.testing.assert_array_equal(cg.conv(np.ones((1, 1, 3)), np.ones((1, 1, 2))), [[[2, 2]]])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_long_copy_stops_where_a_handler_raises(threads, timer):
    """A copy to another order must stop, too: here with many images, which share one place."""
    image = np.arange(2**20, dtype=np.uint32).reshape(1, 1, 1, 1, 1, 1024, 1024)
    target = np.lib.stride_tricks.as_strided(np.zeros_like(image), (3000, *image.shape[1:]), (0, *image.strides[1:]))
    with pytest.raises(Stop):
        timer(0.1)
        begun = time.monotonic()
        compiled.rearrange(np.broadcast_to(image.swapaxes(5, 6), target.shape), target, threads)
        pytest.fail("the copy ended before the timer, or did not listen")
    assert time.monotonic() - begun < 0.5


def test_a_handler_that_returns_changes_nothing(timer):
    heard = []
    signal.signal(signal.SIGALRM, lambda number, frame: heard.append(time.monotonic()))
    x, w = random(2, 128, 64, 64), random(128, 128, 9, 9)
    expected = cg.conv(x, w, padding=4)
    timer(0.02)
    begun = time.monotonic()
    result = cg.conv(x, w, padding=4)
    ended = time.monotonic()
    np.testing.assert_array_equal(result, expected)
    if ended - begun > 0.25:
        assert heard and heard[0] < ended, "the handler was not called during a call of a quarter of a second"


def test_other_threads_compute_on(timer):
    """A call in another thread must go on: Python handles signals in its main thread."""
    x, w = random(2, 128, 64, 64), random(128, 128, 9, 9)
    expected, results, done = cg.conv(x, w, padding=4), [], threading.Event()

    def compute():
        results.append(cg.conv(x, w, padding=4))
        done.set()

    threading.Thread(target=compute).start()
    timer(0.02)
    with pytest.raises(Stop):
        done.wait()
        time.sleep(0.1)
    done.wait()
    np.testing.assert_array_equal(results[0], expected)
