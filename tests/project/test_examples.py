"""The examples of docs/examples: each runs in a short form, prints right numbers and saves a picture."""

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "examples"
#: Examples that test_scale_examples.py runs.
SCALE = ("example_dask_volume", "example_ddp", "example_shard_map")
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in SCALE)

#: Example -> the packages that it needs, and for each number in its output a pattern and the range of the number.
PRINTED = {
    "plot_golden_model": (
        ("matplotlib",),
        [
            (r"^integers: ([\d.]+)% of the elements are wrong, all in rows 10 to 11$", 10, 20),
            (r"^integers, with the index mended: ([\d.]+)% of", 0, 0),
            (r"^golden model: the largest error is ([\d.]+) times", 0.1, 1),
            (r"^sums in float32: the largest error is ([\d.]+) times", 0.1, 1),
            (r"^sums in float16: the largest error is ([\d.]+) times", 5, 500),
        ],
    ),
    "plot_denoise": (
        ("matplotlib",),
        [(r"([\d.]+) dB with noise", 18, 19), (r"([\d.]+) dB after the network", 15, 40)],
    ),
    "plot_upsample_sound": (
        ("matplotlib",),
        [(r"([\d.]+) dB interpolated", 16, 16.6), (r"([\d.]+) dB by the network", 16.7, 40)],
    ),
    "example_autograd": (
        ("matplotlib", "autograd", "tqdm"),
        [
            (r"largest error of the filter: ([\d.]+)", 0, 0.03),
            (r"^(check)_grads: first and second derivatives", None, None),
        ],
    ),
    "example_pytensor": (
        ("matplotlib", "pytensor", "tqdm"),
        [(r"([\d.]+)% of the test digits are right", 60, 100), (r"^(verify)_grad: first and second", None, None)],
    ),
    "example_sigpy": (
        ("matplotlib", "sigpy", "tqdm"),
        [
            (r"^largest difference from sigpy's own: (\S+); all adjoints are adjoint", 0, 1e-12),
            (r"; largest difference: (\S+)$", 0, 1e-10),
        ],
    ),
    "example_unet3d": (
        ("matplotlib", "torch", "tqdm"),
        [
            (r"^PyTorch +([\d.]+) s, Dice", 0.01, 200),
            (r"^convgrad_cy +([\d.]+) s, Dice", 0.01, 200),
            (r"^largest difference of a score: (\S+) of", 0, 1e-4),
            (r"voxels of another class: (\d+)$", 0, 10),
        ],
    ),
    "train_pytorch": (
        ("matplotlib", "torch", "tqdm"),
        [(r"^PyTorch .* ([\d.]+)%$", 50, 100), (r"^convgrad_cy .* ([\d.]+)%$", 50, 100), (r"passed (\d+) on", 0, 0)],
    ),
    "train_jax": (
        ("matplotlib", "jax", "tqdm"),
        [
            (r"^XLA .* ([\d.]+)%$", 50, 100),
            (r"^convgrad_cy .* ([\d.]+)%$", 50, 100),
            (r"left (\d+) to XLA", 0, 0),
            (r"compiled (\d+)", 1, 99),
        ],
    ),
}


#: An example without options: a figure for the gallery, and no numbers.
FIGURE = (("matplotlib",), [])


def test_every_example_with_options_is_tested():
    with_options = [path.stem for path in EXAMPLES if "ArgumentParser" in path.read_text(encoding="utf-8")]
    assert with_options == sorted(PRINTED)


@pytest.mark.examples
@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES])
def test_example(name, tmp_path):
    packages, numbers = PRINTED.get(name, FIGURE)
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    picture = tmp_path / "picture.png"
    short = ["--epochs=1", "--width=8", "--plot"] if name.startswith("train_") else ["--quick"]
    options = [*short, picture] if name in PRINTED else []
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", *options],
        env={**os.environ, "MPLBACKEND": "Agg", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for pattern, least, most in numbers:
        found = re.search(pattern, done.stdout, re.MULTILINE)
        assert found, f"{pattern} is not in:\n{done.stdout}"
        assert least is None or least <= float(found[1]) <= most, found[0]
    if options:
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_fit_for_the_gallery(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 150
    title, line, empty, text = ast.get_docstring(ast.parse(source)).split("\n", 3)
    assert line == "=" * len(title) and not empty
    assert "It needs" in text or path.stem not in PRINTED
    for heading, line in re.findall(r"^# %%\n# (.*)\n# (.*)$", source, re.MULTILINE):
        assert line == "-" * len(heading)


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.stem.startswith("plot_")], ids=lambda path: path.stem
)
def test_the_gallery_needs_numpy_and_matplotlib_alone(path):
    """tqdm must be optional."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    needed = {
        ast.unparse(node).split()[1].partition(".")[0]
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert needed <= {"argparse", "matplotlib", "numpy", "convgrad_cy"}


def test_the_index_names_every_example():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\w+)\.py\)", index)) == sorted([*PRINTED, *SCALE])
