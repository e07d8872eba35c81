"""Training steps of whole networks: the networks, the check of losses, the printed lines. No timing is judged."""

import json
import sys
from importlib.util import find_spec
from math import isfinite
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import models, results
from bench.training import __main__ as command
from bench.training import agreement, report, summary, table

#: The number of convolutions of each network at full size, and its parameters.
CONVOLUTIONS = {"resnet50": 53, "vgg16": 13, "unet": 23, "dcgan": 10, "convnext_tiny": 22, "mobilenet_v2": 52}
CONVOLUTIONS |= {"wav2vec2": 7, "unet3d": 18}
PARAMETERS = {
    # torchvision's
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "convnext_tiny": 28_589_128,
    "mobilenet_v2": 3_504_872,
    # 23 layers: 3×3 without a bias, up and 1×1 with one, and two vectors for each norm.
    "unet": 31_037_698,
    # PyTorch's example: generator and discriminator.
    "dcgan": 3_576_704 + 2_765_568,
    # Seven layers without a bias, a group norm, and the head.
    "wav2vec2": 512 * (10 + 4 * 3 * 512 + 2 * 2 * 512) + 2 * 512 + 513 * 32,
    # The number in the paper, and the parameters that it does not count: norms' vectors, and biases of the way up.
    "unet3d": 19_069_955 + 2 * 2336 + 896,
}


@pytest.fixture
def one_thread():
    """Use one thread: in such small steps, two threads mostly wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def row_of(model="resnet50", torch=(2.0, 2.2, 1.8), ours=(1.0, 1.0, 1.0), **fields):
    """A row in the form that a worker returns."""
    row = {"model": model, "dtype": "float32", "layout": "NCX", "mode": "eager", "passed_on": {}}
    row["seconds"] = {"torch": list(torch), "convgrad_cy": list(ours)}
    row["convolutions"] = {"torch": {"all": 0.75}, "convgrad_cy": {"all": 0.5, "bias": 0.01}}
    return {**row, **fields}


DATA = {
    "kind": "training",
    "machine": {"processor": "one", "date": "2026-01-01T00:00:00", "commit": "c", "load_at_start": 0.0},
    "threads": 2,
    "libraries": {"torch": {"version": "2"}, "convgrad_cy": {"version": "1, x86_64_v4"}},
    "rows": [
        row_of(),
        row_of(layout="NXC", torch=(0.5, 0.5, 0.5), passed_on={"_convolution: a subclass": 2}),
        row_of(dtype="bfloat16", mode="compile", wrong="convgrad_cy: the loss of step 0 is 7"),
        row_of(model="wav2vec2", torch=(8.0, 8.0, 8.0)),
    ],
}


# the networks


@pytest.mark.torch
@pytest.mark.parametrize("name", models.names("torch"))
def test_networks_are_the_standard_ones(name):
    import torch

    with torch.device("meta"):
        network = models.build(models.MODELS[name])
    assert sum(parameter.numel() for parameter in network.parameters()) == PARAMETERS[name]
    layers = [layer for layer in network.modules() if "Conv" in type(layer).__name__ and hasattr(layer, "kernel_size")]
    assert len(layers) == CONVOLUTIONS[name]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "name, layout",
    [(name, layout) for name in models.names("torch") for layout in ("NCX", "NXC")[: 1 + models.MODELS[name].blocked]],
)
def test_a_step(name, dtype, layout, one_thread):
    import convgrad_cy.torch
    from bench.training.torch.steps import steps_of

    # PyTorch's own kernels of bfloat16 give NaN now and then (2.13: 3-D U-Net, channels last, in 2 of 40 runs).
    with convgrad_cy.torch.enabled():
        steps = steps_of(models.chosen(name, small=True), dtype=dtype, layout=layout)
        first, second = steps.losses(2)
        assert isfinite(first) and isfinite(second) and first != second
        assert steps.losses(1) == pytest.approx([first], rel=1e-5), "it starts again from the same weights"


# the check of the losses


def smaller(number, factor):
    """A change of an operator's results. The result with this number, counted from 0, is multiplied."""

    def change(results):
        if not isinstance(results, tuple):
            return results * factor
        return tuple(part * factor if i == number and part is not None else part for i, part in enumerate(results))

    return change


@pytest.mark.torch
@pytest.mark.parametrize(
    "dtype, operator, change",
    [
        pytest.param("float32", 0, smaller(0, 0.99), id="float32-y"),
        pytest.param("float32", 1, smaller(0, 0.9), id="float32-dx"),
        pytest.param("float32", 1, smaller(1, 0.9), id="float32-dw"),
        # Here bfloat16's own rounding moves the loss more than a wrong gradient does.
        pytest.param("bfloat16", 0, smaller(0, 0.9), id="bfloat16-y"),
    ],
)
def test_a_wrong_kernel_is_seen(dtype, operator, change, one_thread):
    from bench.training.torch import noise
    from bench.training.torch.steps import steps_of

    class Wrong(noise.Noise):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            results = operation(*args, **(kwargs or {}))
            return change(results) if operation is noise.CONVOLUTIONS[operator] else results

    model = models.chosen("wav2vec2", small=True)
    exact = steps_of(model, dtype="float64").losses(3)
    plain, steps = steps_of(model), steps_of(model, dtype=dtype)
    allowed = agreement.distances(plain.losses(3), noise.noisy(plain, dtype, 3))
    assert 0 < allowed[0] <= allowed[1] <= allowed[2]
    assert agreement.fault(steps.losses(3), exact, allowed) is None
    with Wrong(dtype, 0):
        assert "the loss of step" in agreement.fault(steps.losses(3), exact, allowed)


def test_faults():
    assert agreement.distances([1.0, 2.0, 3.0], [[1.5, 2.1, 3.0], [0.5, 1.9, 3.0]]) == [2.0, 2.0, 2.0]
    assert agreement.fault([1.0, 2.0], [1.0, 2.1], [0.2, 0.2]) is None
    assert "step 1 is 2;" in agreement.fault([1.0, 2.0], [1.0, 2.1], [0.01, 0.01])
    assert "step 0 is nan" in agreement.fault([float("nan")], [1.0], [0.1])
    assert agreement.fault([1.0], [1.0], [float("nan")]), "an unknown distance allows nothing"


# the worker


@pytest.mark.torch
def test_worker(one_thread):
    from bench.training.worker import Worker

    worker = Worker("torch")
    assert set(worker.answer({"do": "about"})) == {"torch", "convgrad_cy"}
    model = {"model": "wav2vec2", "small": True}
    reference = worker.answer({"do": "reference", **model})
    how = {**model, "dtype": "float32", "layout": "NCX", "mode": "eager", "seconds": 0.0, "pairs": 2}
    expected = {"exact": reference["exact"], "allowed": reference["allowed"]["float32"]}
    found = worker.answer({"do": "measure", **how, **expected})
    assert [len(found["seconds"][side]) for side in ("torch", "convgrad_cy")] == [2, 2]
    assert 0 < found["convolutions"]["torch"]["all"] < 1 and found["convolutions"]["convgrad_cy"]["bias"] == 0
    assert table.line({**row_of(), **found})
    found = worker.answer({"do": "measure", **how, **expected, "exact": [loss + 0.1 for loss in reference["exact"]]})
    assert found["wrong"].startswith("torch: the loss of step 0") and "seconds" not in found
    assert worker.answer({"do": "reference", "model": "resnet51"}) == {"failed": "KeyError: 'resnet51'"}


# tables and plots


def test_arithmetic():
    first, _, wrong, _ = DATA["rows"]
    assert summary.ratios(first) == [2.0, 2.2, 1.8] and summary.ratio(first) == 2.0
    assert summary.least_ratio(first) == 1.8 and summary.limit(first) == 4
    assert summary.ratio(wrong) is None and summary.trouble(wrong) == "wrong: convgrad_cy: the loss of step 0 is 7"
    assert summary.means(DATA["rows"]) == [(("float32", "eager"), pytest.approx(2.0), 3)]


def test_lines():
    assert table.header("torch").split()[:4] == ["model", "type", "layout", "mode"]
    cells = table.line(DATA["rows"][0]).split()
    assert cells == ["ResNet-50", "float32", "NCX", "eager", "2.000", "1.000", "2.00", "1.80", "75%", "1.0%"]
    assert table.line(DATA["rows"][2]).endswith("wrong: convgrad_cy: the loss of step 0 is 7")
    text = "\n".join(table.conclusion(DATA))
    assert "2.00  (3 rows)" in text and "computed by PyTorch all the same: _convolution: a subclass" in text


def test_markdown(capsys, tmp_path):
    file = tmp_path / "training.json"
    results.write(DATA, file)
    report.main([str(file)])
    text = capsys.readouterr().out
    assert "| float32 | eager, channels first | eager, channels last |" in text
    assert "| ResNet-50 | 2.00 of 4.0 | 0.50 of 4.0 |" in text
    assert "| wav2vec 2.0, feature encoder | 8.00 of 4.0 | – |" in text
    assert "| geometric mean | 4.00 | 0.50 |" in text
    assert "| bfloat16 | compiled, channels first |" in text and "| ResNet-50 | wrong |" in text
    report.main([str(file), "--all"])
    assert "1.80–2.20" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        report.main([str(tmp_path / "nothing.json")])


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
@pytest.mark.parametrize("rows", [DATA["rows"], DATA["rows"][2:3]], ids=["some", "none"])
def test_plot(tmp_path, rows):
    from bench.training import plots

    plots.ratios({**DATA, "rows": rows}, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


# the command


@pytest.mark.torch
def test_command(capsys, tmp_path):
    file = tmp_path / "out" / "result.json"
    arguments = "--small --models wav2vec2 --dtypes float32 --modes eager --threads 1 --steps 1 --seconds 0"
    assert command.main([*arguments.split(), "--output", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "1 threads, 1 rows" in printed and "(1 rows)" in printed
    data = json.loads(file.read_text())
    assert data["small"] and [row["model"] for row in data["rows"]] == ["wav2vec2"] and report.markdown(data)


@pytest.mark.torch
def test_a_fault_costs_one_row(capsys, monkeypatch, tmp_path):
    replies = {"about": {}, "reference": {"exact": [1.0], "allowed": {"float32": [0.1], "bfloat16": [0.1]}}}

    def asked(folder, options, do, **fields):
        if do != "measure":
            return replies[do]
        if fields["mode"] == "compile":
            return {"failed": "the process ended with status -11"}
        if fields["layout"] == "NXC":
            raise KeyboardInterrupt
        return row_of()

    monkeypatch.setattr(command, "asked", asked)
    file = tmp_path / "result.json"
    arguments = ["--models", "unet", "--dtypes", "float32", "--output", str(file)]
    assert command.main([*arguments, "--modes", "compile,eager"]) == 1
    data = json.loads(file.read_text())
    assert [summary.trouble(row) for row in data["rows"]] == ["failed: the process ended with status -11"] * 2 + [None]
    assert data["stopped"] == "interrupted" and "status -11" in capsys.readouterr().out
    replies["reference"] = {"failed": "gone"}
    assert command.main(arguments) == 1
    assert json.loads(file.read_text())["rows"][0]["failed"] == "no loss to compare with: gone"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--models", "resnet51"], "'resnet51' is none of resnet50"),
        (["--dtypes", "float64"], "'float64' is none of float32"),
        (["--layouts", "NHWC"], "'NHWC' is none of NCX"),
        (["--modes", "lazy"], "'lazy' is none of eager"),
        (["--threads", "0"], "--threads must be 1 to"),
        (["--steps", "0"], "--steps must be 1 or more"),
        (["--models", "wav2vec2", "--layouts", "NXC"], "nothing is left"),
    ],
)
def test_wrong_arguments(capsys, arguments, said):
    with pytest.raises(SystemExit) as error:
        command.main(arguments)
    assert error.value.code == 2 and said in capsys.readouterr().err


def test_a_python_without_pytorch(capsys, monkeypatch):
    monkeypatch.setattr(command.processes, "has_library", lambda python, name: False)
    with pytest.raises(SystemExit):
        command.main([])
    assert "has no torch" in capsys.readouterr().err
