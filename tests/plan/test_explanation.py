"""``explain`` describes a call truly."""

import json

import numpy as np
import pytest
from problems import PROBLEMS

import convgrad_cy as cg
from convgrad_cy import calls, cpu, explanation
from convgrad_cy.cli.main import main
from convgrad_cy.cli.problem_text import parse
from convgrad_cy.cpu import families
from convgrad_cy.cpu.direct import forms
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.job import Job

COMMON = "mb8ic64ih56oc64kh3ph1"
CONV = [(1, 2, 9), (4, 2, 3)]
A32, A64 = (np.empty(CONV[0], dtype) for dtype in ("float32", "float64"))


def explained(capsys, *arguments):
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "function", "keywords", "family", "reasons"),
    (
        (
            COMMON,
            "conv",
            {},
            "winograd",
            [
                "the operation is no data gradient",
                "the operation is no data gradient",
                "a sum has fewer than 4096 terms",
                "the filter is not larger than y",
            ],
        ),
        (
            COMMON,
            "conv",
            {"algorithm": "direct"},
            "direct",
            [
                "the operation is no data gradient",
                "the operation is no data gradient",
                "a sum has fewer than 4096 terms",
                "the filter is not larger than y",
                "the call asks for the algorithm 'direct'",
                "there is one group",
            ],
        ),
        (
            COMMON,
            "conv",
            {"algorithm": "winograd"},
            "winograd",
            [
                "the operation is no data gradient",
                "the operation is no data gradient",
                "the call asks for the algorithm 'winograd'",
                "the filter is not larger than y",
            ],
        ),
        (
            "mb16ic3ih224oc768oh14kh16sh16",
            "conv_backward_data",
            {},
            "overlaps",
            ["direct has 1.00 times as many products, less than 1.1"],
        ),
        (
            "mb2ic1iw51344oc1026ow197kw1024sw256",
            "conv_backward_data",
            {},
            "overlaps",
            ["direct has 1.02 times as many products, less than 1.1"],
        ),
        (
            "mb8ic4ih100oc4kh71",
            "conv_backward_data",
            {},
            "exchanged",
            [
                "it takes 11.10 times as long as direct, or exchanged",
                "a cell has a part of fewer than 32 elements, and none of 64 or more",
                "the operation is not forward",
            ],
        ),
        (
            "mb8ic64ih56oc64kh1",
            "conv",
            {},
            "direct",
            [
                "the operation is no data gradient",
                "the operation is no data gradient",
                "a sum has fewer than 4096 terms",
                "the filter is not larger than y",
                "it cannot compute a filter of one tap",
                "there is one group",
            ],
        ),
        (
            "mb1ic2ih8oc2kh3",
            "conv_backward_data",
            {},
            "direct",
            [
                "it takes 25.31 times as long as direct, or exchanged",
                "there are fewer than 4000000 products",
                "the operation is not forward",
                "the filter is not larger than y",
                "there are fewer than 2000000 products",
                "there is one group",
            ],
        ),
        (
            "mb1g8ic8ih8oc8kh3",
            "conv",
            {},
            "small_groups",
            [
                "the operation is no data gradient",
                "the operation is no data gradient",
                "a sum has fewer than 256 terms",
                "the filter is not larger than y",
                "there are fewer than 2000000 products",
            ],
        ),
        (
            "mb16g8ic8ih22iw257oc16oh1ow257kh22kw1",
            "conv_backward_data",
            {},
            "small_groups",
            [
                "small groups fill their vectors",
                "there are fewer than 4000000 products",
                "the operation is not forward",
                "the filter is not larger than y",
                "there are fewer than 2000000 products",
            ],
        ),
    ),
)
def test_families_and_reasons(text, function, keywords, family, reasons):
    problem = parse(text)
    shapes = (problem.x_shape if function == "conv" else problem.y_shape, problem.w_shape)
    if function == "conv_backward_data":
        keywords = {**keywords, "x_shape": problem.x_shape}
    found = cg.explain(function, shapes, **problem.keywords, **keywords)
    assert found.family == family and [reason for _, reason in found.declined] == reasons
    lines = str(found).splitlines()
    assert lines[1 : len(reasons) + 1] == [f"rejected: {name} ({reason})" for name, reason in found.declined]
    assert lines[len(reasons) + 1] == f"chosen: {family}"


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("form", "function", "text", "data_format"),
    (
        ("tiles across the positions of a row", "conv", "mb8ic64ih56oc3kh1", "NCX"),
        ("tasks pack their part of the filter", "conv", "mb1ic64ih4oc64kh4", "NCX"),
        ("tiles across the positions of a row", "conv", "mb1ic3ih64oc64kh3ph1", "NCX"),
        ("tasks have all stride phases", "conv_backward_data", "mb1ic64ih58oc128kh4sh2ph1", "NCX"),
        ("tiles across output channels", "conv", "mb8ic64ih56oc64kh1", "NXC"),
    ),
)
def test_forms_and_reasons(capsys, monkeypatch, form, function, text, data_format):
    """Direct's plans must name the form that is taken, and why the forms before it are not."""
    monkeypatch.setattr(cpu, "this_machine", lambda *count: Machine(6, 256, 64, False, 32 << 20, threads=2))
    options = (function, "--problem", text, "--data-format", data_format, "--algorithm", "direct", "--json")
    details = json.loads(explained(capsys, *options))["details"]
    names = [each.name for each in forms.PREFERENCE]
    assert details["form"] == form
    assert [reason.partition(", since ")[0] for reason in details["not"]] == names[: names.index(form)]


def test_the_last_form_suits_whatever_there_is():
    assert forms.PREFERENCE[-1].refusal(None) is None


def test_the_last_family_declines_nothing():
    assert [family.refusal(None) for family in families.PREFERENCE[-1:]] == [None]


@pytest.mark.parametrize("problem", [p for p in PROBLEMS.values() if len(p.x) == 2][:12], ids=str)
@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
def test_is_what_a_call_does(problem, dtype, monkeypatch):
    """The kernel, the threads and the blocks must be the same as in a call with these arrays."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x, w = (np.ones(shape, np.dtype(dtype)) for shape in (problem.x_shape, problem.w_shape))
    jobs, ready = [], Job.ready
    monkeypatch.setattr(Job, "ready", lambda job, numbers: jobs.append(job) or ready(job, numbers))
    calls.forget()
    cg.conv(x, w, **problem.keywords)
    found = cg.explain(cg.conv, (x.shape, w.shape), dtype, **problem.keywords)
    calls.forget()
    assert found.details["kernel"] == jobs[0].kernel and found.details["threads"] == jobs[0].plan.blocks[0]
    if found.family == "direct":
        assert found.details["chunk of channels"] == jobs[0].plan.blocks[4]


def test_nothing_is_computed_or_kept(monkeypatch):
    monkeypatch.setattr(cpu, "prepare", None)
    size = len(calls._KNOWN)
    cg.explain("conv", [(64, 512, 300, 300), (512, 512, 3, 3)], "float64")
    assert len(calls._KNOWN) == size


def test_nothing_to_compute():
    found = cg.explain("conv", [(0, 2, 9), (4, 2, 3)])
    assert (found.family, found.shape, found.declined) == (None, (0, 4, 7), ())
    assert "nothing to compute" in str(found)


@pytest.mark.parametrize(
    ("error", "match", "function", "shapes", "keywords"),
    (
        (ValueError, "function must be one of conv, .*, not convolve; did you mean 'conv'", "convolve", [], {}),
        (ValueError, "shapes must have one entry for each of x, w, not 1", "conv", [(1, 2, 9)], {}),
        (ValueError, "shapes must have one entry for each of dy, x, w, not 2", "conv_backward", [(1, 2, 9)] * 2, {}),
        (TypeError, "shapes must have the shape of w as a sequence", "conv", [(1, 2, 9), "a"], {}),
        (TypeError, "conv has no keyword 'strides'; did you mean 'stride'", "conv", CONV, {"strides": 2}),
        (TypeError, "conv has no keyword 'pad'; did you mean 'padding'", "conv", CONV, {"pad": 1}),
        (TypeError, "conv has no keyword 'pads'; did you mean 'padding'", "conv", CONV, {"pads": 1}),
        (TypeError, "conv has no keyword 'rates'; did you mean 'dilation'", "conv", CONV, {"rates": 1}),
        (TypeError, "conv has no keyword 'num_groups'; did you mean 'groups'", "conv", CONV, {"num_groups": 1}),
        (TypeError, "conv has no keyword 'out'$", "conv", CONV, {"out": None}),
        (TypeError, "conv has no keyword 'input_size'$", "conv", CONV, {"input_size": 1}),
        (
            TypeError,
            "conv_backward_data has no keyword 'input_size'; did you mean 'x_shape'",
            "conv_backward_data",
            CONV,
            {"input_size": 1},
        ),
        (TypeError, "x_shape must be a sequence of integers, not None", "conv_backward_data", CONV, {}),
        (ValueError, "is it data_format='NXC'", "conv", [(1, 9, 2), (4, 2, 3)], {}),
        (TypeError, "w must have the dtype of x, float64, not float32", "conv", [A64, A32], {}),
        (ValueError, "stride must be", "conv", [(1, 2, 9), (4, 2, 3)], {"stride": 0}),
        (
            ValueError,
            "algorithm must be 'auto' or 'direct' for a filter of one tap, not 'winograd'",
            "conv",
            [(1, 2, 9), (4, 2, 1)],
            {"algorithm": "winograd"},
        ),
    ),
)
def test_refusals(error, match, function, shapes, keywords):
    with pytest.raises(error, match=match):
        cg.explain(function, shapes, **keywords)


@pytest.mark.parametrize("function", explanation.FUNCTIONS)
@pytest.mark.parametrize("data_format", ("NCX", "NXC"))
def test_command(capsys, function, data_format):
    text = explained(capsys, function, "--problem", COMMON, "--data-format", data_format)
    assert f"\n{function} -> float32, " in text and "  threads: " in text


def test_command_json(capsys):
    found = json.loads(explained(capsys, "conv_backward_data", "--problem", COMMON, "--json"))
    assert found["family"] == "winograd" and found["shape"] == [8, 64, 56, 56]
    assert found["details"]["predicted seconds of one thread"] > 0


@pytest.mark.parametrize("text", ("foo", "mb8", "ic64ih2oc64kh5"))
def test_command_refuses(text, capsys):
    assert main(["explain", "conv", "--problem", text]) == 2
    assert capsys.readouterr().err.startswith("convgrad_cy explain: error: ")
