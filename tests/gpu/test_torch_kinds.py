"""The table of kinds that PyTorch's override takes on a GPU, against the times of bench/results."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", minversion="2.9")

from simulated import OPERATIONS, conv_problem

from bench.gpu.rows import LAYERS, rows
from convgrad_cy.problem import DGRAD, FPROP, WGRAD
from convgrad_cy.torch import kinds

pytestmark = [pytest.mark.torch, pytest.mark.checkout]

ROOT = Path(__file__).parents[2]
PROBLEMS = {layer.name: layer for layer in LAYERS}
TIMED = json.loads((ROOT / "bench/results/h200-sm_90-gpu.json").read_text())["rows"]
#: The least ratio of a layer that is taken.
LEAST = 1.1


def asked(row):
    """The properties of a timed row. The override computes float32 with "high" where PyTorch must not use TF32."""
    layer = PROBLEMS[row["layer"]]
    return kinds.asked(
        OPERATIONS[row["kernel"]],
        conv_problem(layer.problem),
        len(layer.problem.stride),
        arch=90,
        dtype=row["dtype"],
        has_tf32=row["tf32"],
        is_transposed=layer.transposed,
        layout=row["layout"],
    )


def ratio(row):
    return row["cudnn_us"] / row["ours_us"]


#: Rows with cuDNN's time, as the override would compute them, and their properties.
ROWS = [(row, asked(row)) for row in TIMED if "cudnn_us" in row and row["precision"] == "high"]


def shown_by(kind):
    """The rows of a kind."""
    steps = [agrees for name, agrees in kinds._STEPS]
    return [(row, wanted) for row, wanted in ROWS if all(agrees(kind, wanted) for agrees in steps)]


def test_rows_are_read():
    assert len(ROWS) > 150 and {wanted.operation for _, wanted in ROWS} == {DGRAD, WGRAD}


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: f"{kind.line} {kind.ratio}")
def test_a_kind_is_what_was_timed(kind):
    """The limits of a kind must be the least and greatest values of its rows, and its line must be in the document."""
    shown = shown_by(kind)
    assert shown
    assert kind.ratio == round(min(ratio(row) for row, _ in shown), 2) >= LEAST
    wanted = [one for _, one in shown]
    assert {one.operation for one in wanted} == set(kind.operations)
    assert kind.elements == min(one.elements for one in wanted)
    assert kind.channels == min(one.channels for one in wanted)
    assert kind.ranks == (min(one.rank for one in wanted), max(one.rank for one in wanted))
    for limits, values in ((kind.taps, [one.taps for one in wanted]), (kind.strides, [one.strides for one in wanted])):
        assert limits == (min(map(min, values)), max(map(max, values)))
    assert f"\n| {kind.line} |" in (ROOT / "docs/performance.md").read_text()
    assert f"| {kind.line.partition(';')[0]}: {kind.ratio} |" in (ROOT / "docs/pytorch.md").read_text()


def test_no_slow_layer_is_taken():
    taken = [row for row, wanted in ROWS if kinds.refusal(wanted) is None]
    assert len(taken) == 40
    assert [(row["layer"], row["kernel"], row["group"]) for row in taken if ratio(row) < LEAST] == []


def test_float64_with_channels_first():
    """The estimate in kinds.py: the copies for channels first take float64 four times as long as bfloat16."""
    times = {(row["layer"], row["kernel"], row["group"]): row["ours_us"] for row in TIMED}
    copy_rate = json.loads((ROOT / "bench/results/h200-sm_90-gpu.json").read_text())["ceilings"]["copy"]
    least = float("inf")
    for row in TIMED:
        if row["group"] == "float64":
            first, last = (times[row["layer"], row["kernel"], f"bfloat16, channels {end}"] for end in ("first", "last"))
            copies_of_cudnn = 2 * row["bytes"] / copy_rate * 1e6
            least = min(least, (row["cudnn_us"] - copies_of_cudnn) / (row["ours_us"] + 4 * (first - last)))
    assert 1.25 <= least < 2


#: A call that is taken, and changes with which it is not.
TAKEN = kinds.Asked(
    arch=90,
    dtype="bfloat16",
    has_tf32=True,
    operation=DGRAD,
    is_transposed=False,
    groups="depthwise",
    layout="NCX",
    rank=2,
    taps=(7, 7),
    strides=(1, 1),
    dilations=(1, 1),
    channels=384,
    elements=2 * 128 * 384 * 14 * 14,
)
FLOAT64 = TAKEN._replace(dtype="float64", groups="one", layout="other", taps=(3, 3))
FLOAT32 = FLOAT64._replace(dtype="float32", has_tf32=False, layout="NXC", taps=(1, 1), elements=1 << 28)
REFUSED = {
    "compute capability 80": (TAKEN, {"arch": 80}),
    "compute capability 100": (FLOAT64, {"arch": 100}),
    "tensors of float16": (TAKEN, {"dtype": "float16"}),
    "TF32": (FLOAT32, {"has_tf32": True}),
    "transposed convolutions": (FLOAT64, {"is_transposed": True}),
    "the operation fprop": (TAKEN, {"operation": FPROP}),
    "groups: several": (TAKEN, {"groups": "several"}),
    "groups: one": (TAKEN, {"groups": "one"}),
    "groups: depthwise": (FLOAT64, {"groups": "depthwise"}),
    "the layout other": (TAKEN, {"layout": "other"}),
    "the layout NCX": (FLOAT32, {"layout": "NCX"}),
    "1 spatial axes": (FLOAT64, {"rank": 1}),
    "the strides (2, 1)": (TAKEN, {"strides": (2, 1)}),
    "the strides (1, 3)": (FLOAT64, {"strides": (1, 3)}),
    "the filter size (31, 31)": (TAKEN, {"taps": (31, 31)}),
    "the filter size (1, 3)": (FLOAT64, {"taps": (1, 3)}),
    "the filter size (3, 3)": (FLOAT32, {"taps": (3, 3)}),
    "the dilations (1, 2)": (TAKEN, {"dilations": (1, 2)}),
    "as few channels": (TAKEN, {"channels": 63}),
    "as few elements": (TAKEN, {"elements": TAKEN.elements - 1}),
}


@pytest.mark.parametrize("wanted", (TAKEN, FLOAT64, FLOAT32), ids=lambda wanted: wanted.dtype)
def test_taken(wanted):
    assert kinds.refusal(wanted) is None


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    wanted, changed = REFUSED[text]
    reason = f"no kind that is taken on a GPU has {text}"
    assert kinds.refusal(wanted._replace(**changed)) == reason


def test_each_step_is_refused_in_a_test():
    begins = [name.partition("{")[0] for name, _ in kinds._STEPS]
    assert all(any(text.startswith(begin) for text in REFUSED) for begin in begins if begin)


def test_every_row_is_known():
    assert {row["layer"] for row in TIMED} <= {row.case.name for row in rows()}
