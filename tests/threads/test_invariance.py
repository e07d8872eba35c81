"""Equal inputs give equal bits for any number of threads, and exact results on any ISA."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from child import NAMES, PROBLEMS_IN_CHILDREN, as_bytes
from layouts import INPUTS
from operations import DTYPES, OPERATIONS, bits, dtype_of, integer_tensors, real_tensors

import convgrad_cy
from convgrad_cy import cpu

HERE = Path(__file__).parent


def run_python(*arguments, **environment):
    """Run a child that finds this package and these tests.

    Warnings are errors, except the one for a build without OpenMP.
    """
    before = filter(None, [os.environ.get("PYTHONPATH")])
    path = os.pathsep.join([str(Path(convgrad_cy.__file__).parents[1]), str(HERE), str(HERE.parent), *before])
    return subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:convgrad_cy was built without OpenMP", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def here():
    """The results of this process."""
    return as_bytes()


@pytest.fixture
def elsewhere(tmp_path):
    """Compute the results in a child with the given environment."""

    def run(**environment):
        child = run_python(HERE / "child.py", tmp_path / "results.npz", **environment)
        assert child.returncode == 0, child.stderr
        with np.load(tmp_path / "results.npz") as file:
            return dict(file)

    return run


def differing(left, right):
    assert left.keys() == right.keys()
    return [name for name in left if not np.array_equal(left[name], right[name])]


def assert_integers_are_exact(results):
    """Assert that the results on integers equal the reference."""
    for problem in PROBLEMS_IN_CHILDREN:
        for dtype in DTYPES:
            _, expected = integer_tensors(problem, dtype)
            for name in NAMES:
                exact = expected[OPERATIONS[name].kernel].astype(dtype_of(dtype))
                result = results[f"integers/{name}/{dtype}/{problem.name}"].view(exact.dtype)
                np.testing.assert_array_equal(result, exact.ravel(), err_msg=f"{name} {dtype} {problem}")


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads(here, elsewhere, threads):
    """All results, on integers and on reals, must have the bits of this process, for any number of threads."""
    results = elsewhere(OMP_NUM_THREADS=str(threads), CONVGRAD_CY_ISA=cpu.isa)
    assert results.pop("isa") == cpu.isa
    assert_integers_are_exact(results)
    assert differing(results, here) == []


def test_differences_are_seen(here):
    changed = dict(here)
    name = f"reals/conv/float32/{PROBLEMS_IN_CHILDREN[-1]}"
    changed[name] = changed[name] ^ 1
    assert differing(changed, here) == [name]


@pytest.mark.parametrize("isa", cpu.available_isas())
def test_isas(elsewhere, isa):
    results = elsewhere(CONVGRAD_CY_ISA=isa)
    assert results["isa"] == isa
    assert_integers_are_exact(results)


def test_isa_in_use_is_available():
    assert cpu.isa in cpu.available_isas()
    wanted = os.environ.get("CONVGRAD_CY_ISA")
    assert not wanted or cpu.isa == wanted


@pytest.mark.parametrize("value", ["vax", "x86_64_v9", "X86_64_V3"])
def test_unknown_isa(value):
    child = run_python("-c", "import convgrad_cy", CONVGRAD_CY_ISA=value)
    assert child.returncode != 0
    message = child.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError"), child.stderr
    assert value in message
    for isa in cpu.available_isas():
        assert isa in message


@pytest.mark.parametrize("layout", INPUTS)
def test_layouts(layout):
    """Real data must have equal bits: strides must not change the order of a sum."""
    for problem in PROBLEMS_IN_CHILDREN:
        for dtype in ("bfloat16", "float32") if "bfloat16" in DTYPES else ("float32",):
            tensors = real_tensors(problem, dtype)
            for name in NAMES:
                plain = OPERATIONS[name].call(problem, tensors)
                other = OPERATIONS[name].call(problem, tensors, layout=layout)
                assert bits(other) == bits(plain), f"{name} {dtype} {problem}"


def test_twice_the_same():
    """Two calls in a row must agree: no result may depend on the old contents of a scratch buffer."""
    first, second = as_bytes(), as_bytes()
    assert differing(first, second) == []


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("taps", [1, 3])
def test_infinite_weights(dtype, taps):
    """An infinite weight makes sums next to padding NaN, and the kernel computes these again, in its own order."""
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(dtype_of(dtype)) for shape in [(2, 512, 14, 14), (64, 512, taps, 3)])
    w[:, 0, 0, 0] = np.inf
    results = set()
    for threads in (1, 2, 8):
        with convgrad_cy.num_threads(threads):
            for images in (1, 2):
                result = convgrad_cy.conv(x[:images], w, padding=(taps // 2, 1), algorithm="direct")[0]
                assert np.isfinite(result.astype(np.float32)).any()
                results.add(bits(result))
    assert len(results) == 1
