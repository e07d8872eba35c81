"""Long sums of few outputs at few positions: vectors lie along the sum."""

import numpy as np
import pytest
from checks import check_contract, check_formats, check_layouts, check_no_memory, check_not_finite, geometries
from hypothesis import given, settings
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
from convgrad_cy.cpu.plan.pipeline import Pipeline

#: Problems with vectors along each axis of a sum, with groups, strides, dilation, padding, slices, and runs in pieces.
PROBLEMS = [
    parse(text)
    for text in (
        'mb1ic40iw300oc4ow1kw300n"dense"',
        'mb3ic3ih9iw260oc5oh4ow3kh6kw250sw5n"width"',
        'mb2ic9ih308oc3oh5kh300sh2n"height"',
        'mb1ic5id130ih7iw8oc4od3oh2ow2kd128kh6kw5sw3n"depth"',
        'mb2ic330ih7iw18oc7oh2ow3kh6kw6dw2n"channels"',
        'mb1g3ic21iw900oc6ow2kw840pw0sw60n"groups"',
        'mb2ic4ih34iw286oc3oh5ow4kh30kw160ph10pw30sh6sw62n"padded"',
        'mb1ic2iw9300oc1ow2kw9000sw300n"pieces"',
        'mb5ic11ih30iw40oc13oh4ow5kh27kw36n"rows"',
    )
]
FORWARD = {name: OPERATIONS[name] for name in ("conv", "conv_transpose_backward_data")}

wide = pytest.mark.skipif(cpu.this_machine().vector_bytes < 64, reason="narrower vectors are filled by more axes")
problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)
forward = pytest.mark.parametrize("operation", FORWARD.values(), ids=list(FORWARD))


@pytest.fixture
def forced(monkeypatch):
    """Force long sums for all forward operations, and collect their plans."""
    counted, plan = [], long_sums.pipeline

    def counting(*arguments):
        counted.append(plan(*arguments))
        return counted[-1]

    monkeypatch.setattr(long_sums, "refusal", lambda task: None if task.operation == "fprop" else "not here")
    monkeypatch.setattr(long_sums, "pipeline", counting)
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


@pytest.mark.tuning
@wide
@pytest.mark.parametrize(
    ("channels", "outputs", "kernel", "family"),
    (
        (128, 16, 6, "direct"),  # the filter would be copied, and outputs fill a vector
        (128, 16, 20, "long_sums"),
        (128, 2, 6, "direct"),  # short, for copies
        (128, 1, 20, "long_sums"),
        (4, 4, 62, "long_sums"),  # along the width, where channels first need no copy
    ),
)
def test_copies_have_to_pay(channels, outputs, kernel, family):
    found = cg.explain("conv", [(1, channels, kernel + 1, kernel + 1), (outputs, channels, kernel, kernel)])
    assert found.family == family


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
    """Each axis of a sum must have vectors along it in some problem."""
    machine = explained(PROBLEMS[0])
    assert machine.details["vectors along"] == "taps of width"
    found = [explained(problem).details["vectors along"] for problem in PROBLEMS]
    assert set(found) == {"channels", "taps of depth", "taps of height", "taps of width"}


@problems
def test_within_the_contract(problem, forced):
    check_contract(OPERATIONS["conv"], problem, np.prod(problem.w_shape[1:]))


@problems
def test_layouts(problem, forced):
    check_layouts(OPERATIONS["conv"], problem)
    check_formats(OPERATIONS["conv"], problem)


@problems
def test_an_image_alone(problem, forced):
    """With "direct", an image must have the bits that it has in a batch."""
    x, w, _ = real_tensors(problem, "float32")
    both = np.concatenate([x, x[:1] * 3])
    alone = cg.conv(both[-1:], w, **problem.keywords, algorithm="direct")
    assert bits(cg.conv(both, w, **problem.keywords, algorithm="direct")[-1:]) == bits(alone)


@problems
def test_what_is_not_finite_reaches_what_its_taps_do(problem, forced):
    check_not_finite(OPERATIONS["conv"], problem)


@settings(max_examples=200)
@given(geometries(20, channels=(1, 11), outputs=(1, 3), dtypes=("float16", "float32", "float64", "int32")))
def test_any_geometry(drawn):
    def result(refusal):
        calls.forget()
        patch.setattr(long_sums, "refusal", refusal)
        return cg.conv(drawn.x, drawn.w, **drawn.keywords)

    with pytest.MonkeyPatch.context() as patch:
        expected, found = result(lambda task: "not here"), result(lambda task: None)
    calls.forget()
    np.testing.assert_array_equal(found, expected)


def test_out_is_as_it_was_without_memory(forced):
    """Without memory for the sums of slices, ``out`` must keep its values."""
    problem = PROBLEMS[0]
    tensors = real_tensors(problem, "float32")
    out = np.full(problem.y_shape, np.nan, np.float32)
    OPERATIONS["conv"].call(problem, tensors, out=out)
    x, w, _ = tensors
    work = forced[0].ready()
    (job,) = forced[0].jobs()
    blocks = np.array([*job.plan.blocks[:-2], 1 << 46, job.plan.blocks[-1]])
    huge = Pipeline((job._replace(plan=job.plan._replace(blocks=blocks)),)).ready()
    check_no_memory(lambda *out: work.run(x, w, *out), lambda *out: huge.run(x, w, *out), out)


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
    """A sum without terms must be zero: with no channels, and with taps that all meet padding."""
    for x, w in (((1, 0, 8), (3, 0, 5)), ((2, 0, 3, 3), (4, 0, 2, 2))):
        result = cg.conv(np.zeros(x, np.float32), np.zeros(w, np.float32))
        assert result.size and not result.any()
    result = cg.conv(np.ones((1, 2, 3), np.float32), np.ones((1, 2, 2), np.float32), padding=((9, 0),))
    assert not result[0, 0, :8].any() and result[0, 0, -1] == 4
