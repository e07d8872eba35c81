"""Long sums of few outputs at few positions: vectors lie along the sum."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layouts import INPUTS, OUTPUTS
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    OPERATIONS,
    assert_exact,
    bits,
    integer_tensors,
    real_tensors,
)
from problems import parse

import convgrad_cy as cg
from convgrad_cy import calls, cpu
from convgrad_cy.cpu import long_sums

#: Along each axis of a sum, with groups, strides, dilation, padding, several slices, and runs in several pieces.
PROBLEMS = [
    parse(text)
    for text in (
        'mb1ic40iw300oc4ow1kw300n"dense"',
        'mb3ic3ih9iw260oc5oh4ow3kh6kw250sw5n"width"',
        'mb2ic9ih308oc3oh5kh300sh2n"height"',
        'mb1ic5id130ih7iw8oc4od3oh2ow2kd128kh6kw5sw3n"depth"',
        'mb2ic330ih5iw18oc7oh2ow3kh4kw6dw2n"channels"',
        'mb1g3ic21iw900oc6ow2kw840pw0sw60n"groups"',
        'mb2ic4ih34iw286oc3oh5ow4kh30kw160ph10pw30sh6sw62n"padded"',
        'mb1ic2iw9300oc1ow2kw9000sw300n"pieces"',
        'mb5ic11ih30iw40oc13oh4ow5kh27kw36n"rows"',
    )
]
FORWARD = {name: OPERATIONS[name] for name in ("conv", "conv_transpose_backward_data")}

wide = pytest.mark.skipif(cpu.machine().vector_bytes < 64, reason="narrower vectors are filled by more axes")
problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)
forward = pytest.mark.parametrize("operation", FORWARD.values(), ids=list(FORWARD))


@pytest.fixture
def forced(monkeypatch):
    """Forward operations by long sums, whatever that takes; counts their plans."""
    counted, ready = [], long_sums.LongSums.ready

    def counting(self):
        counted.append(self)
        return ready(self)

    monkeypatch.setattr(long_sums, "suits", lambda task: None if task.operation == "fprop" else "not here")
    monkeypatch.setattr(long_sums.LongSums, "ready", counting)
    calls.forget()
    yield counted
    calls.forget()


def explained(problem, **keywords):
    return cg.explain("conv", [problem.x_shape, problem.w_shape], **problem.keywords, **keywords)


@pytest.mark.tuning
@problems
def test_taken(problem):
    found = explained(problem)
    assert found.family == "long_sums" and found.details["slices of a sum"] >= 1


@problems
@forward
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_exact(problem, operation, data_format, filter_format, forced):
    for dtype in DTYPES:
        tensors, _ = integer_tensors(problem, dtype)
        result = operation.call(problem, tensors, data_format, filter_format)
        assert_exact(result, operation.expected(problem, tensors, data_format, filter_format), dtype)
    assert len(forced) == len(DTYPES)


@pytest.mark.tuning
@wide
def test_axes():
    """Each axis of a sum has vectors along it in some problem; one is cut into pieces, one into as many slices."""
    machine = explained(PROBLEMS[0])
    assert machine.details["vectors along"] == "taps of width"
    found = [explained(problem).details["vectors along"] for problem in PROBLEMS]
    assert set(found) == {"channels", "taps of depth", "taps of height", "taps of width"}


@problems
def test_within_the_contract(problem, forced):
    """An error of (terms + 1) * eps times the sum of the terms' magnitudes, at most."""
    operation, tensors = OPERATIONS["conv"], real_tensors(problem, "float32")
    exact = operation.expected(problem, type(tensors)(*(each.astype(np.float64) for each in tensors)))
    magnitude = operation.expected(problem, type(tensors)(*(abs(each.astype(np.float64)) for each in tensors)))
    error = abs(operation.call(problem, tensors) - exact)
    terms = np.prod(problem.w_shape[1:])
    assert (error <= (terms + 1) * np.finfo(np.float32).eps * magnitude).all()


@problems
def test_layouts(problem, forced):
    """Bit by bit: neither strides, formats nor threads decide anything about the order of a sum."""
    operation, tensors = OPERATIONS["conv"], real_tensors(problem, "float32")
    plain = operation.call(problem, tensors)
    for layout in INPUTS:
        assert bits(operation.call(problem, tensors, layout=layout)) == bits(plain)
    for layout in OUTPUTS:
        out = layout(np.full(plain.shape, np.nan, np.float32))
        operation.call(problem, tensors, out=out)
        assert bits(out) == bits(plain)
    for data_format in DATA_FORMATS:
        for threads in (1, 2, 5):
            with cg.num_threads(threads):
                other = operation.call(problem, tensors, data_format, "XIO")
            assert bits(np.moveaxis(other, -1, 1) if data_format == "NXC" else other) == bits(plain)


@problems
def test_an_image_alone(problem, forced):
    """By "direct" it has the bits that it has in a batch."""
    x, w, _ = real_tensors(problem, "float32")
    both = np.concatenate([x, x[:1] * 3])
    alone = cg.conv(both[-1:], w, **problem.keywords, algorithm="direct")
    assert bits(cg.conv(both, w, **problem.keywords, algorithm="direct")[-1:]) == bits(alone)


@problems
def test_what_is_not_finite_reaches_what_its_taps_do(problem, forced):
    operation = OPERATIONS["conv"]
    tensors, _ = integer_tensors(problem, "float32")
    for value in (np.inf, np.nan):
        for i in (0, 1):
            spoilt = [tensor.copy() for tensor in tensors]
            spoilt[i][tuple(size // 2 for size in spoilt[i].shape)] = value
            spoilt = type(tensors)(*spoilt)
            with np.errstate(invalid="ignore"):
                expected, result = operation.expected(problem, spoilt), operation.call(problem, spoilt)
            np.testing.assert_array_equal(np.isfinite(result), np.isfinite(expected))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_geometry(data):
    axes = []
    for _ in range(data.draw(st.integers(1, 3))):
        kernel, y = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 4))
        stride, dilation = data.draw(st.integers(1, 4)), data.draw(st.sampled_from((1, 1, 2, 3)))
        pad = tuple(data.draw(st.integers(0, kernel * dilation)) for _ in range(2))
        over = data.draw(st.integers(0, stride - 1))
        size = (y - 1) * stride + (kernel - 1) * dilation + 1 - sum(pad) + over
        if size < 1:
            return
        axes.append((size, kernel, stride, dilation, pad))
    sizes, kernels, strides, dilations, pads = zip(*axes, strict=True)
    batch, groups, channels, outputs = (data.draw(st.integers(1, 3)) for _ in range(4))
    channels *= data.draw(st.sampled_from((1, 11)))
    outputs *= data.draw(st.sampled_from((1, 3)))
    rng = np.random.default_rng(0)

    def tensor(*shape):
        return rng.integers(-3, 4, shape).astype(data_type)

    data_type = data.draw(st.sampled_from(("float16", "float32", "float64", "int32")))
    x, w = tensor(batch, groups * channels, *sizes), tensor(groups * outputs, channels, *kernels)
    keywords = {"stride": strides, "dilation": dilations, "padding": pads, "groups": groups, "algorithm": "direct"}

    def result(suits):
        calls.forget()
        patch.setattr(long_sums, "suits", suits)
        return cg.conv(x, w, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        expected, found = result(lambda task: "not here"), result(lambda task: None)
    calls.forget()
    np.testing.assert_array_equal(found, expected)


def test_out_is_as_it_was_without_memory(forced):
    """Where the sums of slices cannot be had."""
    problem, operation = PROBLEMS[0], OPERATIONS["conv"]
    tensors = real_tensors(problem, "float32")
    out = np.full(problem.y_shape, np.nan, np.float32)
    operation.call(problem, tensors, out=out)
    before, (x, w, _) = out.copy(), tensors
    work = forced[0].ready()

    def refuse():
        raise MemoryError("none")

    out[...] = 7
    with pytest.raises(MemoryError):
        work.run(x, w, out, refuse)  # asked when all memory is there
    assert (out == 7).all()
    work.run(x, w, out, lambda: None)
    assert bits(out) == bits(before)
    huge = forced[0]._replace(blocks=forced[0].blocks._replace(slices=1 << 46)).ready()
    out[...] = 7
    with pytest.raises(MemoryError):
        huge.run(x, w, out)
    assert (out == 7).all()


@pytest.mark.tuning
@wide
@pytest.mark.parametrize(
    ("text", "reason"),
    (
        ('mb1ic64ih8oc2oh2kh7n"short"', "a sum has fewer than "),
        ('mb1ic17iw301oc2ow2kw300n"few"', "an image has fewer than 30000 products"),
        ('mb1ic64ih108oc2oh100kh9n"positions"', "y has more than "),
        ('mb1ic64ih10oc640oh2kh9n"outputs"', "y has more than "),
        ('mb1ic3ih2000oc2oh2kh1000dh1n"apart"', "no axis of the sum fills vectors"),
    ),
)
def test_declines(text, reason):
    assert dict(explained(parse(text)).declined)["long_sums"].startswith(reason)


def test_asked_for_otherwise():
    found = explained(parse('mb1ic64ih4oc64oh2kh3n"taps"'), algorithm="winograd")
    assert dict(found.declined)["long_sums"] == "the call asks for the algorithm 'winograd'"


def test_scratch_limit():
    before = cg.get_scratch_limit()
    try:
        cg.set_scratch_limit(1000)
        assert dict(explained(PROBLEMS[0]).declined)["long_sums"].startswith("it takes ")
    finally:
        cg.set_scratch_limit(before)


def test_no_terms(forced):
    """A sum of no terms is zero: of no channels, and of taps that all meet padding."""
    for x, w in (((1, 0, 8), (3, 0, 5)), ((2, 0, 3, 3), (4, 0, 2, 2))):
        result = cg.conv(np.zeros(x, np.float32), np.zeros(w, np.float32))
        assert result.size and not result.any()
    result = cg.conv(np.ones((1, 2, 3), np.float32), np.ones((1, 2, 2), np.float32), padding=((9, 0),))
    assert not result[0, 0, :8].any() and result[0, 0, -1] == 4
