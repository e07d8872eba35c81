"""Which calls ``enable(cuda=True)`` takes at the dispatcher: layers of the benchmark, planned without memory."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import fake_streams  # noqa: E402
from cuda_calls import BACKWARD, FORWARD, Call, call, imagined, since  # noqa: E402
from cuda_tensors import ghost  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402
from bench.gpu.rows import LAYERS  # noqa: E402
from convgrad_cy.torch import cuda  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.checkout]


@pytest.fixture(autouse=True)
def pytorch(monkeypatch):
    with imagined(monkeypatch) as made:
        yield made


TIMED = json.loads((Path(__file__).parents[2] / "bench/results/h200-sm_90-gpu.json").read_text())["rows"]
BENCHED = {layer.name: layer for layer in LAYERS}


class Unlaunched:
    """A work without launches."""

    size = 0
    run_at = staticmethod(lambda *_: None)


@pytest.fixture
def planned(monkeypatch):
    """Plan layers of any size, without memory and kernels."""
    monkeypatch.setattr(cuda, "gpu_work", lambda *_: Unlaunched())
    meta = torch.empty_strided
    monkeypatch.setattr(
        torch,
        "empty_strided",
        lambda shape, strides, *, dtype, device: ghost(meta(shape, strides, dtype=dtype, device="meta")),
    )
    monkeypatch.setattr(cuda.KERNELS["_convolution"], "previous", lambda *call: call[0])
    monkeypatch.setattr(cuda.KERNELS["convolution_backward"], "previous", lambda *call: (None, None, None))


def layer(name, dtype, layout="NCX"):
    """The call of a layer of the benchmark."""
    case = BENCHED[name].case(layout, dtype)
    assert not case.transposed

    def tensor(shape):
        meta = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        if layout == "NXC":
            meta = meta.movedim(1, -1).contiguous().movedim(-1, 1)
        return ghost(meta)

    padding = [begin for begin, _ in case.padding]
    geometry = ([*case.stride], padding, [*case.dilation], False, [0] * len(padding), case.groups)
    return Call(*map(tensor, (case.x, case.w, case.y)), None, *geometry)


def name_of(row):
    return f"{row['layer']} {row['kernel']} {row['dtype']} {row['layout']}"


def is_taken(row):
    """Whether the row is in the list of kinds, and PyTorch gives its result the layout that was timed."""
    return (
        row["precision"] == "high"
        and row["dtype"] in ("bfloat16", "float64", "float32")
        and ("depthwise" in row["group"] or row["dtype"] != "bfloat16")
        and row["cudnn_us"] / row["ours_us"] >= 1.1
        and not (row["layer"] == "depthwise_causal_4" and row["layout"] == "NXC")
    )


GRADIENTS = {
    name_of(row): row
    for row in TIMED
    if row["dtype"] != "int32" and row["precision"] == "high" and not BENCHED[row["layer"]].transposed
}


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("name", GRADIENTS)
def test_a_timed_gradient(monkeypatch, name):
    """A gradient that was at least 1.1x as fast must be ours, unless it is among float32's mixed results."""
    row = GRADIENTS[name]
    monkeypatch.setattr(cuda, "has_tf32", lambda: row["tf32"])
    there = layer(row["layer"], row["dtype"], row["layout"])
    override.enable(cuda=True)
    before = override.status()
    there.backward(row["kernel"] == "dgrad", row["kernel"] == "wgrad", False)
    computed, reasons = since(before)
    if computed[BACKWARD]:
        assert is_taken(row) and not reasons
    else:
        ((_, reason),) = reasons
        assert reason.startswith("no kind that is taken on a GPU has ")
        assert not is_taken(row) or (row["dtype"] == "float32" and reason.endswith("the filter size (3, 3)"))


#: Calls whose gradients PyTorch computes, and the end of the reason.
KEPT = {
    "float16": (lambda: layer("depthwise_7x7_384", "float16"), "tensors of float16"),
    "TF32": (lambda: layer("unet3d_64", "float32", "NXC"), "TF32"),
    "groups": (lambda: layer("resnext50_8_a_group", "bfloat16", "NXC"), "groups: several"),
    "the filter's gradient": (lambda: layer("depthwise_7x7_384", "bfloat16", "NXC"), "the operation wgrad"),
    "1-D with channels last": (lambda: layer("depthwise_causal_4", "bfloat16", "NXC"), "the layout other"),
    "two layouts": (
        lambda: Call(*layer("depthwise_7x7_384", "bfloat16", "NXC").in_order()[:2],
                     layer("depthwise_7x7_384", "bfloat16").tensors[0], None,
                     *layer("depthwise_7x7_384", "bfloat16").geometry),
        "the layout other",
    ),
    "strides": (lambda: layer("depthwise_3x3_144_stride2", "bfloat16"), "the strides (2, 2)"),
    "a large filter": (lambda: layer("depthwise_31x31_128", "bfloat16"), "the filter size (31, 31)"),
    "float64, one by one": (lambda: layer("resnet50_1x1_64_256", "float64"), "the filter size (1, 1)"),
    "dilation": (lambda: layer("dilated_3x3_256", "float64"), "the dilations (2, 2)"),
    "a small batch": (lambda: layer("batch_1_3x3_128", "float64"), "as few elements"),
}  # fmt: skip


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("name", KEPT)
def test_a_call_that_pytorch_keeps(name):
    there, end = KEPT[name]
    there = there()
    for cuda_value, computed in ((True, 0), ("all", 1)):
        override.enable(cuda=cuda_value)
        before = override.status()
        there.backward()
        counts, reasons = since(before)
        assert counts[BACKWARD] == computed
        assert reasons == ([] if computed else [(BACKWARD, f"no kind that is taken on a GPU has {end}")])


@pytest.mark.usefixtures("planned")
def test_forward_calls_are_pytorchs():
    """No forward call was timed."""
    there = layer("depthwise_7x7_384", "bfloat16")
    override.enable(cuda=True)
    before = override.status()
    there.forward()
    assert since(before)[1] == [(FORWARD, "no kind that is taken on a GPU has the operation fprop")]
    there.backward()
    assert since(before)[0] == {FORWARD: 0, BACKWARD: 1}


@pytest.mark.usefixtures("planned")
def test_another_gpu(monkeypatch):
    monkeypatch.setattr(fake_streams.Device, "compute_capability", "100")
    there = layer("depthwise_7x7_384", "bfloat16")
    override.enable(cuda=True)
    before = override.status()
    there.backward()
    assert since(before)[1] == [(BACKWARD, "no kind that is taken on a GPU has compute capability 100")]


@pytest.mark.usefixtures("planned")
def test_tf32_is_asked_at_each_call():
    """A change of PyTorch's setting must count at the next call, for float32."""
    there = layer("unet3d_64", "float32", "NXC")
    override.enable(cuda=True)
    before = override.status()
    setting, computed = torch.backends.cudnn.conv.fp32_precision, []
    try:
        for precision in ("ieee", "tf32", "ieee"):
            torch.backends.cudnn.conv.fp32_precision = precision
            there.backward()
            computed.append(since(before)[0][BACKWARD])
    finally:
        torch.backends.cudnn.conv.fp32_precision = setting
    assert computed == [1, 1, 2]


def test_precision(monkeypatch):
    """Where TF32 is allowed, three products must be used, which are more accurate; else six."""
    seen = []
    check = cuda.plans.checked
    monkeypatch.setattr(
        cuda.plans, "checked", lambda *call, **options: (seen.append(options["precision"]), check(*call, **options))[1]
    )
    there = call().on()
    override.enable(cuda="all")
    for has_tf32 in (True, False):
        monkeypatch.setattr(cuda, "has_tf32", lambda has_tf32=has_tf32: has_tf32)
        there.forward()
    assert seen == ["medium", "high"]
