"""oneDNN Graph's operations against a recording of the real library: exact values, and errors by their status.

``CONVGRAD_CY_ONEDNN_VENV`` names an environment with the real library (see conformance/record_onednn.py). The live test
draws new calls in it.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conformance import onednn_calls, replay

from convgrad_cy.shims import onednn

pytest.importorskip("ml_dtypes", reason="the recording has bfloat16, which needs ml_dtypes")

FOLDER = Path(__file__).parents[1] / "conformance"
ORIGIN, RECORDED = replay.load(FOLDER / "onednn.json")
CALLS = {expression: onednn_calls.Captured.of(expression) for expression in RECORDED}
NAMES = {"v3": onednn_calls.v3_names(), "documents": onednn_calls.documented_names()}


def replayed(recorded, names):
    """The tally of the calls whose operation is among ``names``."""
    calls = {expression: CALLS.get(expression) or onednn_calls.Captured.of(expression) for expression in recorded}
    outcomes = [
        (expression, real, onednn_calls.answer(expression, names))
        for expression, real in recorded.items()
        if calls[expression].kind in names
    ]
    return replay.tally(outcomes, lambda expression, *both: onednn_calls.compare(*both, calls[expression]))


@pytest.mark.parametrize("names", NAMES)
def test_recording(names, capsys):
    """All values and statuses must be the recorded ones, except for the rules of docs/golden-model.md."""
    counts, wrong = replayed(RECORDED, NAMES[names])
    with capsys.disabled():
        print()
        replay.print_counts(f"oneDNN, names of {names}", counts)
    assert wrong == {}


def test_recording_is_large():
    """The recording must have 200 values and 150 errors, of every operation, layout, dtype, padding and rank."""
    values = [expression for expression, real in RECORDED.items() if real.error is None]
    assert len(values) >= 200 and len(RECORDED) - len(values) >= 150
    for kind in onednn_calls.KINDS:
        calls = [CALLS[expression] for expression in values if CALLS[expression].kind == kind]
        assert {call.arrays[0].ndim for call in calls} == {3, 4, 5}
        assert {call.arrays[0].dtype.name for call in calls} == {"float32", "bfloat16"}
        assert {call.attributes.get("auto_pad") for call in calls} >= {
            None,
            "None",
            "VALID",
            "SAME_UPPER",
            "SAME_LOWER",
        }
        assert {call.attributes.get("data_format") for call in calls} == {None, "NXC", "NCX"}
        assert len({call.attributes.get("weights_format") for call in calls}) == 3
        for name in ("strides", "dilations"):
            assert {value for call in calls for value in call.attributes[name]} >= {1, 2, 3}
        if kind != "ConvolutionBackwardData":
            assert {call.attributes.get("groups") for call in calls} >= {None, 1, 2, 3, 4}


def test_float16_values():
    """float16 must have the values of float32: small integers are exact in both. The recording has no float16."""
    tested = 0
    for expression, real in RECORDED.items():
        call = CALLS[expression]
        if real.error is None and onednn_calls.compare(real, real, call) == (None, None):
            row, _ = onednn_calls.compare(real, onednn_calls.answer(expression, NAMES["v3"]), call)
            if row is None and real.array.dtype == np.float32:
                here = onednn_calls.answer(expression.replace("float32", "float16"), NAMES["v3"])
                assert here.array.dtype == np.float16
                np.testing.assert_array_equal(here.array, real.array.astype(np.float16))
                tested += 1
    assert tested > 200


def forward(kind, about):
    """Recorded forward calls with a result: the attributes, the two inputs and the real output, as float32."""
    for expression, real in RECORDED.items():
        call = CALLS[expression]
        filled = real.error is None and all(array.size for array in (*call.arrays, real.array))
        if call.kind == kind and filled and about(call.attributes):
            yield call.attributes, *(array.astype(np.float32) for array in (*call.arrays, real.array))


def same(attributes):
    return attributes.get("auto_pad", "None").startswith("SAME")


def delta(output):
    return replay.tensor("float32", output.shape, 5)


def product(one, other):
    return np.vdot(one.astype(np.float64), other.astype(np.float64))


def renamed(attributes, **names):
    return {names.get(name, name): value for name, value in attributes.items()}


def test_groups_of_convolution_backprop_data():
    """DECISIONS: groups must work, although the real operation fails. <conv(x), dy> = <x, gradient(dy)>."""
    tested = 0
    for attributes, src, weights, dst in forward("Convolution", lambda a: a.get("groups", 1) > 1):
        op = onednn.ConvolutionBackpropData(
            **renamed(attributes, weights_format="filter_format"), output_shape=list(src.shape)
        )
        assert product(dst, delta(dst)) == product(src, op(delta(dst), weights))
        tested += 1
    assert tested > 20


def test_auto_pad_of_conv_transpose_backprop_filters():
    """DECISIONS: the padding must follow from output_delta and output_padding, as in the real ConvTranspose."""
    tested, padded = 0, 0
    for attributes, src, weights, dst in forward("ConvTranspose", same):
        op = onednn.ConvTransposeBackwardWeights(**attributes, weights_shape=list(weights.shape))
        assert product(dst, delta(dst)) == product(weights, op(src, delta(dst)))
        tested, padded = tested + 1, padded + any(attributes.get("output_padding", ()))
    assert tested > 20 and padded > 5


def test_dilations_of_conv_transpose_backward_data():
    """The operation must be the adjoint of the real ConvTranspose. The real operation treats every dilation as 1."""
    tested = 0
    for attributes, src, weights, dst in forward("ConvTranspose", lambda a: max(a["dilations"]) > 1):
        attributes = dict(attributes)
        if any(attributes.pop("output_padding", ())):
            continue  # the operation lacks this attribute, and some input would be too large
        op = onednn.ConvTransposeBackwardData(**attributes)
        assert product(dst, delta(dst)) == product(src, op(delta(dst), weights))
        tested += 1
    assert tested > 20


def test_output_padding_of_convolution_backprop_data():
    """DECISIONS: output_padding must be part of the padding under auto_pad, as in the real ConvTranspose."""
    tested = 0
    for attributes, src, weights, dst in forward("ConvTranspose", lambda a: any(a.get("output_padding", ()))):
        layout = {"XOI": "XIO", "IOX": "OIX"}[attributes.get("weights_format", "XOI")]
        attributes = renamed(attributes | {"weights_format": layout}, weights_format="filter_format")
        op = onednn.ConvolutionBackpropData(**attributes, output_shape=list(dst.shape))
        np.testing.assert_array_equal(op(src, weights), dst)
        tested += 1
    assert tested > 20


@pytest.mark.onednn
@pytest.mark.skipif("CONVGRAD_CY_ONEDNN_VENV" not in os.environ, reason="CONVGRAD_CY_ONEDNN_VENV is not set")
def test_live(tmp_path, capsys):
    """New random calls must agree with the real library: CONVGRAD_CY_LIVE_CALLS of them, from CONVGRAD_CY_LIVE_SEED."""
    python = Path(os.environ["CONVGRAD_CY_ONEDNN_VENV"]) / "bin" / "python"
    calls, seed = replay.live_settings()
    script, environment = FOLDER / "record_onednn.py", {**os.environ, "PYTHONPATH": ""}

    def recorded(*arguments, **variables):
        command = [python, script, tmp_path / "live.json", *map(str, arguments)]
        subprocess.run(command, check=True, env=environment | variables, timeout=600, stdout=subprocess.DEVNULL)
        return replay.load(tmp_path / "live.json")

    origin, live = recorded("--random", calls, "--seed", seed)
    counts, wrong = replayed(live, NAMES["v3"])
    # Some kernels of oneDNN compute wrong values. Its kernels for the oldest machines are the second opinion.
    doubtful = [call.replace("bfloat16", "float32") for call, problem in wrong.items() if problem.startswith("values")]
    (tmp_path / "again.json").write_text(json.dumps(doubtful))
    _, again = recorded("--again", tmp_path / "again.json", ONEDNN_MAX_CPU_ISA="SSE41") if doubtful else (None, {})
    _, still = replayed(again, NAMES["v3"])
    confirmed = {call for call in wrong if call.replace("bfloat16", "float32") in again.keys() - still.keys()}
    counts["wrong value"] -= len(confirmed)
    counts["values of a kernel that oneDNN's SSE4.1 kernels contradict"] += len(confirmed)
    with capsys.disabled():
        print(f"\n{origin}, {len(live)} random calls, seed {seed}")
        replay.print_counts("oneDNN, live", counts)
    assert {call: problem for call, problem in wrong.items() if call not in confirmed} == {}
