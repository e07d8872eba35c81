"""docs/scale.md's examples run: Dask on a volume, PyTorch's DDP in two processes, JAX's shard_map on two devices."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def printed(*command, timeout=300):
    """The text that an example prints. It finds the package that is tested."""
    import convgrad_cy

    path = os.pathsep.join([str(Path(convgrad_cy.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=timeout, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def volume(folder, *options, timeout=300):
    """The largest memory of each process of the example, in GiB."""
    pytest.importorskip("distributed")
    pytest.importorskip("zarr")
    text = printed(EXAMPLES / "example_dask_volume.py", "--folder", folder, *options, timeout=timeout)
    assert text.count("100% Completed") >= 2, "no progress was shown"
    assert len({*re.findall(r"\b(\d+)% Completed", text)}) >= 5, "the progress was shown at the end alone"
    assert float(re.search(r"norm of dw: (\S+),", text)[1]) > 0
    (peaks,) = re.findall(r"peak memory of each process: (.*)", text)
    assert not [*folder.iterdir()], "the volumes are left behind"
    return [float(peak) for peak in re.findall(r"([\d.]+) GiB", peaks)]


@pytest.mark.dask
@pytest.mark.parametrize("workers", [0, 2])
def test_a_volume(tmp_path, workers):
    assert len(volume(tmp_path, "--gib=0.06", "--block=32", f"--workers={workers}")) == 1 + workers


@pytest.mark.dask
@pytest.mark.slow
def test_a_volume_larger_than_its_memory(tmp_path):
    """The gradients of 2 GiB must need no process of 2 GB."""
    (peak,) = volume(tmp_path, "--gib=2", timeout=1800)
    assert peak <= 2e9 / 2**30


@pytest.mark.torch
def test_two_processes_of_pytorch():
    start = "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"
    text = printed(*start, EXAMPLES / "example_ddp.py", "--epochs=1", "--width=8")
    assert re.search(r"^2 processes, weights (\w+) \1: equal$", text, re.MULTILINE)
    assert re.search(r"computed [1-9]\d* calls and passed 0 on", text)
    assert float(re.search(r"test accuracy ([\d.]+)%", text)[1]) > 50


@pytest.mark.jax
def test_two_devices_of_jax():
    text = printed(EXAMPLES / "example_shard_map.py", "--steps=10")
    assert float(re.search(r"differ by (\S+) of the largest", text)[1]) < 1e-5
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)$", text, re.MULTILINE)]
    assert len(losses) == 2 and losses[1] < losses[0]
    assert re.search(r"2 devices: convgrad_cy computed [1-9]\d* convolutions, left 0 to XLA", text)
