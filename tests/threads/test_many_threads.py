"""Bits are equal for 1 to 128 threads. Each number has its own plans."""

from hashlib import sha256
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operations import DTYPES, dtype_of

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.cpu.machine import kernels
from convgrad_cy.cpu.plan.job import Job

THREADS = (2, 3, 5, 8, 16, 33, 64, 128)
#: Numbers of threads that really run. Plans for other numbers run on one thread, as timed tasks do.
RUN = (3, 16)
MOST_TASKS = 1 << 16

geometries = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 5),
        "groups": st.sampled_from((1, 1, 1, 2, 8, 40)),
        "x_channels": st.sampled_from((1, 2, 3, 4, 8, 16, 17, 33, 64)),
        "y_channels": st.sampled_from((1, 2, 3, 4, 8, 16, 17, 33, 64, 130)),
        "extent": st.lists(st.integers(5, 24), min_size=1, max_size=3),
        "kernel": st.sampled_from((1, 2, 3, 3, 3, 4, 5)),
        "stride": st.sampled_from((1, 1, 1, 2, 3)),
        "dilation": st.sampled_from((1, 1, 1, 2)),
        "padding": st.integers(0, 2),
    }
)


@pytest.fixture(autouse=True)
def no_call_is_small():
    """Plan for all threads, however few products there are, and forget known calls."""

    known = kernels._machine

    def machine(*asked):
        usual = known(*asked)
        return usual._replace(
            own_tuning=usual.tuning._replace(
                serial_products=0, task_products=1, least_tiled_products=1, least_packed_bytes=1
            )
        )

    calls.forget()
    with patch.object(kernels, "_machine", machine):
        yield
    calls.forget()


def operations(geometry, dtype, data_format, algorithm):
    """The three operations as calls without arguments, or None if the geometry has no result."""
    rank, groups = len(geometry["extent"]), geometry["groups"]
    ins, outs = (
        min(geometry[name], 4 if groups > 8 else 33 if groups > 1 else 130) for name in ("x_channels", "y_channels")
    )
    reach = (geometry["kernel"] - 1) * geometry["dilation"] + 1
    y = [(n + 2 * geometry["padding"] - reach) // geometry["stride"] + 1 for n in geometry["extent"]]
    if min(y) < 1:
        return None
    rng = np.random.default_rng(0)

    def activation(channels, extents):
        shape = (channels, *extents) if data_format == "NCX" else (*extents, channels)
        return rng.standard_normal((geometry["batch"], *shape)).astype(dtype)

    scale = 1 if np.dtype(dtype).kind != "i" else 9
    x, dy = activation(groups * ins, geometry["extent"]), activation(groups * outs, y)
    w = (scale * rng.standard_normal((groups * outs, ins, *[geometry["kernel"]] * rank))).astype(dtype)
    keywords = {name: geometry[name] for name in ("stride", "dilation", "padding", "groups")}
    keywords |= {"data_format": data_format, "algorithm": algorithm}
    return (
        lambda: cg.conv(x, w, **keywords),
        lambda: cg.conv_backward_data(dy, w, x.shape, **keywords),
        lambda: cg.conv_backward_filter(x, dy, w.shape, **keywords),
    )


def digest(result):
    """A short digest: pytest takes minutes to show how the bytes of whole arrays differ."""
    return sha256(result.tobytes()).hexdigest()


def on_one(call):
    """The bits of a call's result, computed with its plan on one thread."""
    results = []
    kernels.compiled.time_tasks(lambda: results.append(call()), MOST_TASKS)
    return digest(results[0])


@settings(max_examples=60)
@given(
    geometry=geometries,
    dtype=st.sampled_from(DTYPES),
    data_format=st.sampled_from(("NCX", "NXC")),
    algorithm=st.sampled_from(("auto", "auto", "direct", "winograd")),
)
def test_same_bits(geometry, dtype, data_format, algorithm):
    made = operations(geometry, dtype_of(dtype), data_format, algorithm)
    for call in made or ():
        with cg.num_threads(1):
            try:
                expected = on_one(call)
            except ValueError:  # Winograd's algorithm cannot compute it
                assert algorithm == "winograd"
                continue
        for number in THREADS:
            with cg.num_threads(number):
                assert on_one(call) == expected, number
                assert number not in RUN or digest(call()) == expected, number


@pytest.mark.parametrize("data_format", ("NCX", "NXC"))
@pytest.mark.parametrize("algorithm", ("direct", "winograd"))
def test_other_plans_have_the_same_bits(monkeypatch, data_format, algorithm):
    """Other plans of a layer with several chunks, boxes and slices, cut for many threads, must have equal bits."""
    seen, usual = set(), Job.ready

    def ready(job, numbers):
        seen.add((job.kernel, *job.plan.blocks[1:].tolist(), job.plan.steps.tobytes()))
        return usual(job, numbers)

    monkeypatch.setattr(Job, "ready", ready)
    geometry = {"batch": 4, "groups": 1, "x_channels": 130, "y_channels": 130, "extent": [20, 24], "kernel": 3}
    geometry |= {"stride": 1, "dilation": 1, "padding": 1}
    for call in operations(geometry, np.float32, data_format, algorithm):
        seen.clear()
        results = []
        for number in (2, 64):
            with cg.num_threads(number):
                results.append(on_one(call))
        assert results[0] == results[1]
        assert len(seen) > 1


@pytest.mark.parametrize(("operation", "number"), [*product(range(3), (64, 128))])
def test_depthwise_wgrad(operation, number):
    geometry = {"batch": 4, "groups": 96, "x_channels": 1, "y_channels": 1, "extent": [28, 28], "kernel": 3}
    geometry |= {"stride": 1, "dilation": 1, "padding": 1}
    call = operations(geometry, np.float32, "NXC", "auto")[operation]
    with cg.num_threads(2):
        expected = on_one(call)
    with cg.num_threads(number):
        assert on_one(call) == expected == digest(call())


@pytest.mark.parametrize("together", (1, 2, 3, 64))
@pytest.mark.parametrize(("stride", "groups"), ((2, 1), (3, 1), (2, 2)))
def test_parts_of_a_result_share_their_loops(monkeypatch, stride, groups, together):
    """Stride phases by Winograd's algorithm must share loops: a round has one for filters, products and, maybe, tiles.

    A round has ``together`` phases. One more loop arranges x in out.
    """
    usual = kernels._machine  # the fixture's function

    def machine(*asked):
        made = usual(*asked)
        return made._replace(own_tuning=made.tuning._replace(most_parts=together))

    geometry = {"batch": 2, "groups": groups, "x_channels": 33, "y_channels": 40, "extent": [26, 25]}
    geometry |= {"kernel": 2 * stride, "stride": stride, "dilation": 1, "padding": 1}
    call = operations(geometry, np.float32, "NXC", "winograd")[1]
    with cg.num_threads(2):
        expected = on_one(call)
    monkeypatch.setattr(kernels, "_machine", machine)
    calls.forget()
    with cg.num_threads(64):
        assert on_one(call) == expected == digest(call())
        *_, times = kernels.compiled.time_tasks(call, MOST_TASKS)
    rounds = -(-(stride**2) // together)
    assert len({loop for loop, *_ in times}) - 1 in (2 * rounds, 3 * rounds)
