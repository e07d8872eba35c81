"""The handler that XLA calls: its errors, its cache of plans, and programs that another process has compiled."""

import pytest

pytest.importorskip("jax", minversion="0.7")

import jax
import numpy as np
import scripts

import convgrad_cy as cg
import convgrad_cy.jax as override
from convgrad_cy import _xla_ffi
from convgrad_cy.checks.functions import CONV
from convgrad_cy.jax import plans
from convgrad_cy.jax.reading import read
from convgrad_cy.memo import bounded

pytestmark = pytest.mark.jax


def text(batch, channels=1, taps=3):
    """The text of a plan of a 1-D convolution of 8 positions."""
    params = {
        "dimension_numbers": ((0, 1, 2),) * 3,
        "window_strides": (1,),
        "padding": ((0, 0),),
        "lhs_dilation": (1,),
        "rhs_dilation": (1,),
        "feature_group_count": 1,
        "batch_group_count": 1,
    }
    shapes = (batch, channels, 8), (1, channels, taps), (batch, 1, 9 - taps)
    reading = read(shapes, np.dtype(np.float32), None, params)
    assert reading.function is CONV
    return plans.text_of(reading)


@pytest.mark.parametrize(
    "error", [MemoryError("of a test"), ValueError("of a test, ε"), KeyboardInterrupt("of a test")]
)
def test_errors(monkeypatch, error):
    """An exception must become XLA's error with its text, and the next call must work."""

    def fail(text, threads):
        raise error

    x, w = np.ones((1, 1, 8), np.float32), np.ones((1, 1, 3), np.float32)
    with override.enabled():
        convolve = jax.jit(lambda x, w: jax.lax.conv(x, w, (1,), "VALID")).lower(x, w).compile()
        plans.forget()
        _xla_ffi.set_planner(plans.known.entries, fail, cg.get_num_threads)
        try:
            with pytest.raises(jax.errors.JaxRuntimeError, match=f"{type(error).__name__}: of a test"):
                jax.block_until_ready(convolve(x, w))
        finally:
            _xla_ffi.set_planner(plans.known.entries, plans.make, cg.get_num_threads)
        np.testing.assert_array_equal(convolve(x, w), 3 * np.ones((1, 1, 6)))


def test_plans_are_bounded():
    """Plans of ten thousand shapes must take no more than one cache may hold."""
    plans.forget()
    for batch in range(1, 20001):
        plans.make(text(batch), 1)
    assert plans.known.bytes <= bounded.MOST_BYTES
    assert len(plans.known) < 20000


def test_a_plan_that_was_dropped_is_made_again():
    x, w = np.ones((1, 1, 8), np.float32), np.ones((1, 1, 3), np.float32)
    with override.enabled():
        convolve = jax.jit(lambda x, w: jax.lax.conv(x, w, (1,), "VALID"))
        np.testing.assert_array_equal(convolve(x, w), 3 * np.ones((1, 1, 6)))
        plans.forget()
        np.testing.assert_array_equal(convolve(x, w), 3 * np.ones((1, 1, 6)))
        assert len(plans.known) == 1


def test_threads_are_part_of_the_key():
    plans.forget()
    x, w = np.ones((1, 1, 8), np.float32), np.ones((1, 1, 3), np.float32)
    with override.enabled():
        convolve = jax.jit(lambda x, w: jax.lax.conv(x, w, (1,), "VALID"))
        for number in (1, 2, 1):
            cg.set_num_threads(number)
            jax.block_until_ready(convolve(x, w))
    cg.set_num_threads(None)
    assert sorted(threads for _, threads in plans.known.entries) == [1, 2]


def test_a_text_of_another_version():
    """The error must name the fault of the text. Nothing may be computed from it."""
    with pytest.raises(Exception, match="conv_of_tomorrow"):
        plans.make(text(1).replace(b'"conv"', b'"conv_of_tomorrow"'), 1)
    with pytest.raises(ValueError, match="has a result of shape"):
        plans.make(text(1).replace(b"[1,1,6]", b"[1,1,5]"), 1)


CACHED = """
import sys, jax, numpy as np
jax.config.update("jax_compilation_cache_dir", "cache")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
hits = []
jax.monitoring.register_event_listener(lambda name, **more: hits.append(name))
import convgrad_cy.jax as override
override.enable()
x, w = np.arange(24, dtype=np.float32).reshape(1, 2, 12), np.ones((3, 2, 4), np.float32)
convolve = jax.jit(lambda x, w: jax.lax.conv(x, w, (2,), "VALID"))
print(float(convolve(x, w).sum()), override.status().computed, any("cache_hits" in name for name in hits))
"""


def test_the_persistent_cache(tmp_path):
    """A second process must find the compiled program, and our handler must run it there."""
    total = 3 * sum(sum(range(begin, begin + 4)) for row in (0, 12) for begin in range(row, row + 9, 2))
    assert scripts.run(tmp_path, CACHED) == [f"{float(total)} 1 False"]
    assert scripts.run(tmp_path, CACHED) == [f"{float(total)} 1 True"]


PENDING = """
import jax, convgrad_cy.jax
convgrad_cy.jax.enable()
jnp = jax.numpy
x, w = jnp.ones((8, 3, 128, 128)), jnp.ones((3, 3, 3, 3))
convolve = jax.jit(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"))
slow = jax.jit(lambda x, a: (x + a[0, 0], jnp.sin(a @ a)))
jax.block_until_ready(convolve(x, w))
a = jnp.ones((512, 512))
for _ in range(50):  # XLA computes a program on its own thread if the operands are not computed yet
    x, a = slow(x, a)
for _ in range(20):
    x = convolve(x, w)
print(x.shape, flush=True)
"""


def test_exit_while_a_program_runs(tmp_path):
    """Python must exit while XLA's threads want to compute convolutions."""
    assert scripts.run(tmp_path, PENDING, timeout=60) == ["(8, 3, 128, 128)"]


VERSIONS = """
import convgrad_cy
try:
    import convgrad_cy.jax
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "module, said",
    [
        ("__version__ = '0.6.2'", "convgrad_cy.jax needs JAX 0.7 or newer, not 0.6.2"),
        ("raise ImportError('no jaxlib')", "convgrad_cy.jax needs JAX 0.7 or newer: pip install jax"),
    ],
)
def test_jax_that_is_missing_or_old(tmp_path, module, said):
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "jax.py").write_text(module)
    assert scripts.run(tmp_path, VERSIONS, paths=[folder]) == [said]


def test_the_package_does_not_import_jax(tmp_path):
    assert scripts.run(tmp_path, "import sys, convgrad_cy\nprint('jax' in sys.modules)") == ["False"]
