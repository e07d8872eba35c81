"""Results do not depend on the state of the caller's floating-point unit, and calls leave it as it was.

The state is MXCSR. Its upper bits control how x86-64 rounds, and whether it treats subnormal numbers as zero.
"""

import contextlib
import ctypes
import platform

import numpy as np
import pytest
from operations import FLOATS, OPERATIONS, Tensors, bits, dtype_of, real_tensors
from problems import PROBLEMS, parse

import convgrad_cy as cg
from convgrad_cy import calls

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="reads glibc's fenv_t of x86-64"
)

STANDARD = 0x1F80
STATES = {
    "down": STANDARD | 0x2000,
    "up": STANDARD | 0x4000,
    "towards_zero": STANDARD | 0x6000,
    "flush_to_zero": STANDARD | 0x8000,
    "denormals_are_zero": STANDARD | 0x0040,
    "both": STANDARD | 0x8040,
}
#: The bits that control. The others record past events.
CONTROL = 0xFFC0
states = pytest.mark.parametrize("state", STATES.values(), ids=list(STATES))

#: A problem for each algorithm: tiles, stride phases, a first layer, lanes of small groups, Winograd's algorithm.
CHOSEN = (
    PROBLEMS["2d_sixteen"],
    PROBLEMS["2d_stride2"],
    PROBLEMS["2d_first_layer"],
    PROBLEMS["2d_depthwise"],
    parse('mb2ic64ih28oc64kh3ph1n"winograd"'),
)


class FloatEnvironment(ctypes.Structure):
    """fenv_t of glibc on x86-64."""

    _fields_ = [("x87", ctypes.c_uint32 * 7), ("mxcsr", ctypes.c_uint32)]


def environment():
    found = FloatEnvironment()
    assert ctypes.CDLL("libm.so.6").fegetenv(ctypes.byref(found)) == 0
    return found


@contextlib.contextmanager
def in_state(mxcsr):
    """Run with another state, which must still be set at the end."""
    before, other = environment(), environment()
    other.mxcsr = mxcsr
    libm = ctypes.CDLL("libm.so.6")
    assert libm.fesetenv(ctypes.byref(other)) == 0
    try:
        yield
        assert environment().mxcsr & CONTROL == mxcsr & CONTROL
    finally:
        libm.fesetenv(ctypes.byref(before))


def tiny(tensors, dtype):
    """The tensors with some subnormal elements, if the type has such numbers."""
    made = []
    for array in tensors:
        array = array.copy()
        array.reshape(-1)[::3] *= np.asarray(2.0**-126 if dtype != "float16" else 2.0**-14, array.dtype)
        made.append(array)
    return Tensors(*made)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
@pytest.mark.parametrize("dtype", FLOATS)
@states
def test_bits(operation, dtype, state):
    for problem in CHOSEN:
        real = real_tensors(problem, dtype)
        for tensors in (real, tiny(real, dtype)):
            for algorithm in ("direct", "auto"):
                for threads in (1, 2):
                    with cg.num_threads(threads):
                        expected = operation.call(problem, tensors, algorithm=algorithm)
                        calls.forget()
                        with in_state(state):
                            result = operation.call(problem, tensors, algorithm=algorithm)
                    assert bits(result) == bits(expected), f"{problem} {algorithm} {threads}"


def test_states_are_seen():
    """NumPy's sums must depend on each of these states, so that the tests above can fail."""
    random = np.random.default_rng(0)
    values = random.standard_normal(1000).astype(np.float32)
    small = values * np.float32(2.0**-126)
    assert dtype_of("float32") == values.dtype
    for state in STATES.values():
        before = values.cumsum(dtype=np.float32).tobytes() + (small * np.float32(1.5)).tobytes()
        with in_state(state):
            after = values.cumsum(dtype=np.float32).tobytes() + (small * np.float32(1.5)).tobytes()
        assert after != before, hex(state)
