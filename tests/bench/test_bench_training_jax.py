"""Training steps of JAX: the networks, the check of losses, the command. No timing is judged."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import models
from bench.training import __main__ as command
from bench.training import agreement, report, summary, table

#: Channels of the 3×3 and of the 2×2 layers of the U-Net.
UNET = ((3, 32), (32, 32), (32, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256))
UNET += ((256, 128), (128, 128), (128, 64), (64, 64), (64, 32), (32, 32))
UNET_UP = ((256, 128), (128, 64), (64, 32))


def convnext_block(c):
    """The weights of a block: 7×7 depthwise, norm, two dense layers."""
    return 50 * c + 2 * c + (c + 1) * 4 * c + (4 * c + 1) * c


#: Convolutions of each network, transposed ones counted, and its weights.
SIZES = {
    "jax_vgg": (8, 9 * (3 * 64 + 64 * 128 + 128 * 256 + 256**2 + 256 * 512 + 3 * 512**2) + 2752 + 2049 * 10),
    "jax_resnet18": (20, 11_689_512 - 513 * 1000 + 513 * 10),  # torchvision's, with ten classes
    "jax_unet": (18, sum((9 * i + 1) * o for i, o in UNET) + sum((4 * i + 1) * o for i, o in UNET_UP) + 33 * 2),
    "jax_convnext": (6, 49 * 64 + 257 * 128 + 2 * convnext_block(64) + 2 * convnext_block(128) + 129 * 10),
}


def row_of(model="jax_vgg", jax=(0.2, 0.21, 0.19), ours=(0.1, 0.1, 0.1), **fields):
    """A row in the form that a worker returns."""
    row = {"model": model, "dtype": "float32", "layout": "NXC", "mode": "jit", "passed_on": {}}
    return {**row, "seconds": {"jax": list(jax), "convgrad_cy": list(ours)}, **fields}


DATA = {
    "kind": "training",
    "framework": "jax",
    "machine": {"processor": "one", "date": "2026-01-01T00:00:00", "commit": "c", "load_at_start": 0.0},
    "threads": 2,
    "libraries": {"jax": {"version": "0.10.2"}, "convgrad_cy": {"version": "1, x86_64_v4"}},
    "rows": [row_of(), row_of("jax_unet", jax=(0.8, 0.8, 0.8), passed_on={"operands of int8": 2})],
}


@pytest.mark.jax
@pytest.mark.parametrize("name", models.names("jax"))
def test_networks(name):
    import jax

    from bench.models.jax.layers import Drawn

    model, drawn = models.MODELS[name], Drawn(0)
    network, shape = models.build(model), (model.batch, *model.inputs[1:], model.inputs[0])
    program = jax.make_jaxpr(lambda x: network(drawn, x))(jax.ShapeDtypeStruct(shape, "float32"))
    convolutions = [equation for equation in program.eqns if equation.primitive.name == "conv_general_dilated"]
    assert (len(convolutions), sum(w.size for w in drawn.all)) == SIZES[name]
    axes = model.inputs[1:] if model.dense else ()
    assert [value.aval.shape for value in program.jaxpr.outvars] == [(model.batch, *axes, model.classes)]


@pytest.mark.jax
def test_wrong_kernels_are_seen():
    import jax

    from bench.models.jax.layers import Given
    from bench.training.jax import noise, steps

    @jax.custom_vjp
    def smaller_gradient(x):
        return x

    smaller_gradient.defvjp(lambda x: (x, None), lambda _, dx: (0.9 * dx,))

    def wrong(part):
        """Weights whose convolutions have a result or a gradient that is too small."""

        def convolution(function, x, w):
            y = function(smaller_gradient(x) if part == "dx" else x, smaller_gradient(w) if part == "dw" else w)
            return 0.99 * y if part == "y" else y

        def weights_of(weights, extra):
            given = Given(weights)
            given.convolution = convolution
            return given

        return weights_of

    model = models.chosen("jax_convnext", small=True)
    plain = steps.Steps(model).losses(3)
    noisy = steps.Steps(model, weights_of=noise.Noisy, extra=noise.signs(0, 0))
    runs = [noisy.losses(3, [noise.signs(seed, step) for step in range(3)]) for seed in range(agreement.DRAWS)]
    allowed = agreement.distances(plain, runs)
    assert 0 < allowed[0] <= allowed[1] <= allowed[2]
    for part in ("y", "dx", "dw"):
        losses = steps.Steps(model, weights_of=wrong(part)).losses(3)
        assert "the loss of step" in agreement.fault(losses, plain, allowed), part


@pytest.mark.jax
def test_command(capsys, tmp_path):
    """Each side's losses must agree with float64, and every convolution must be ours."""
    file = tmp_path / "result.json"
    arguments = "--framework jax --small --models jax_convnext --threads 1 --steps 2 --seconds 0 --output"
    assert command.main([*arguments.split(), str(file)]) == 0
    printed = capsys.readouterr().out
    assert "1 threads, 1 rows" in printed and "JAX's time for a step to ours" in printed
    data = json.loads(file.read_text())
    (row,) = data["rows"]
    assert [len(row["seconds"][side]) for side in ("jax", "convgrad_cy")] == [2, 2]
    assert sum(row["lowered"].values()) >= 11 and row["passed_on"] == {}
    assert row["losses"]["jax"] == pytest.approx(row["exact"], abs=row["allowed"][0])
    assert "| ConvNeXt-like |" in report.markdown(data)


def test_tables():
    assert table.header("jax").split()[4:] == ["JAX,", "s", "ours,", "s", "ratio", "of", "minima"]
    assert table.line(DATA["rows"][0]).split()[-4:] == ["0.200", "0.100", "2.00", "1.90"]
    text = "\n".join(table.conclusion(DATA))
    assert "4.00  (2 rows)" in text and "computed by JAX all the same: operands of int8" in text
    assert summary.limit(DATA["rows"][0]) is None
    text = report.markdown(DATA, whole=True)
    assert "| float32 | jitted, channels last |" in text and "| VGG-like | 2.00 |" in text and "1.90–2.10" in text


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_plot(tmp_path):
    from bench.training import plots

    plots.ratios(DATA, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (
            ["--framework", "jax", "--models", "unet"],
            "JAX has jax_vgg, jax_resnet18, jax_unet, jax_convnext for --models",
        ),
        (["--framework", "jax", "--modes", "eager"], "JAX has jit for --modes, not eager"),
        (["--models", "jax_unet"], "not jax_unet"),
    ],
)
def test_wrong_arguments(capsys, arguments, said):
    with pytest.raises(SystemExit) as error:
        command.main(arguments)
    assert error.value.code == 2 and said in capsys.readouterr().err
