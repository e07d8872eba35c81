"""The limit on the memory that a call takes in addition to its arrays."""

import os
import subprocess
import sys

import numpy as np
import pytest
from operations import OPERATIONS, bits, real_tensors
from problems import parse

import convgrad_cy as cg

#: A call that each family takes without a limit, and its additional bytes, about: copies, or transforms.
OF_FAMILIES = {
    "overlaps": ("conv_backward_data", "mb2ic1iw9000oc300kw400sw160", 500_000),
    "winograd": ("conv", "mb2ic64ih28oc64kh3ph1", 250_000),
}
#: For each kernel, a layer that has many slices, kept filters, or copies.
LAYERS = ("mb2ic64ih28oc64kh3ph1", "mb4ic3ih64oc96kh8sh8", "mb2ic1iw9000oc300kw400sw160", "mb16ic5ih40oc3kh3ph1",
          "mb2g64ic64ih40oc64kh3ph1", "mb2ic32ih20oc32kh4sh2ph1")  # fmt: skip


@pytest.fixture(autouse=True)
def as_before():
    before = cg.get_scratch_limit()
    yield
    cg.set_scratch_limit(before)


def explained(name, text, **keywords):
    operation, problem = OPERATIONS[name], parse(f'{text}n"scratch"')
    result = {"x": "x_shape", "w": "w_shape"}.get(operation.makes)
    asked = {} if result is None else {result: getattr(problem, result)}
    shapes = [getattr(problem, f"{each}_shape") for each in operation.reads]
    return cg.explain(name, shapes, **asked, **problem.keywords, **keywords)


@pytest.mark.parametrize("family", OF_FAMILIES)
def test_families_decline(family):
    name, text, least = OF_FAMILIES[family]
    assert explained(name, text).family == family
    for limit in (least // 4, 0):
        cg.set_scratch_limit(limit)
        plan = explained(name, text)
        reason = dict(plan.declined)[family]
        assert reason.startswith("it takes ") and reason.endswith(f" bytes of scratch, more than the limit of {limit}")
        assert int(reason.split()[2]) >= least // 2
    cg.set_scratch_limit(1 << 30)
    assert explained(name, text).family == family
    cg.set_scratch_limit(None)
    assert explained(name, text).family == family


def test_slices_are_fewer():
    """A sum must have as many slices as there is room for, down to one."""
    text, found = "mb16ic5ih40oc3kh3ph1", []
    for limit in (None, 2000, 1 << 12, 1 << 14, 0):
        cg.set_scratch_limit(limit)
        details = explained("conv_backward_filter", text, algorithm="direct").details
        found.append(details["slices of a sum"])
        assert limit is None or details["scratch bytes"] <= limit
    assert found[0] > 4 and found[-1] == 1 and found[1] <= found[2] <= found[3]


@pytest.mark.parametrize("limit", (0, 40_000, 300_000))
@pytest.mark.parametrize("name", ("conv", "conv_backward_data", "conv_backward_filter"))
@pytest.mark.parametrize("text", LAYERS)
def test_same_bits(name, text, limit):
    """With one limit, the bits must be the same for any threads and layout."""
    cg.set_scratch_limit(limit)
    problem, operation, found = parse(f'{text}n"scratch"'), OPERATIONS[name], set()
    tensors = real_tensors(problem, "float32")
    for formats in (("NCX", "OIX"), ("NXC", "XIO")):
        for threads in (1, 3):
            with cg.num_threads(threads):
                result = operation.call(problem, tensors, *formats, algorithm="auto")
            if formats[0] == "NXC":
                back = ((-1, -2), (0, 1)) if operation.makes == "w" else (-1, 1)
                result = np.moveaxis(result, *back)
            found.add(bits(np.ascontiguousarray(result)))
    assert len(found) == 1


def test_a_known_call_is_planned_anew():
    x, w = np.ones((2, 64, 28, 28), np.float32), np.random.default_rng(0).random((64, 64, 3, 3), np.float32)
    tiled = cg.conv(x, w, padding=1)
    cg.set_scratch_limit(0)
    direct = cg.conv(x, w, padding=1)
    assert (direct == cg.conv(x, w, padding=1, algorithm="direct")).all() and (tiled != direct).any()
    with pytest.raises(ValueError, match=r"^algorithm must be 'auto' or 'direct' for \d+ bytes of scratch, more"):
        cg.conv(x, w, padding=1, algorithm="winograd")
    cg.set_scratch_limit(None)
    assert (cg.conv(x, w, padding=1) == tiled).all()


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    (
        (-1, ValueError, "limit must be at least 0"),
        (1.5, TypeError, "limit must be an integer or None"),
        ("1", TypeError, "limit must be an integer or None"),
        (True, TypeError, "limit must be an integer or None"),
        (2**62, ValueError, r"limit must be less than 2\*\*62, not 4611686018427387904"),
    ),
)
def test_refusals(wrong, error, says):
    cg.set_scratch_limit(5)
    with pytest.raises(error, match=f"^{says}"):
        cg.set_scratch_limit(wrong)
    assert cg.get_scratch_limit() == 5


def run(value):
    code = "import convgrad_cy as cg; print(cg.get_scratch_limit())"
    environment = {**os.environ, "CONVGRAD_CY_SCRATCH_LIMIT": value}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_environment():
    assert run("1048576").stdout == "1048576\n"
    assert run("").stdout == "None\n"
    for wrong in ("1M", "-1", "1.5", str(2**62)):
        refused = run(wrong)
        says = f"CONVGRAD_CY_SCRATCH_LIMIT must be a number of bytes below 2**62, was {wrong!r}"
        assert refused.returncode == 1 and says in refused.stderr
