"""Programs for a machine with a GPU, run with kernels that fail (drill/): each row must still have a verdict."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench.gpu import rows as gpu_rows

ROOT = Path(__file__).parents[2]
DRILL = Path(__file__).with_name("drill")

pytestmark = [
    pytest.mark.simulator,
    pytest.mark.skipif(which("bash") is None, reason="bash is not on the path"),
    pytest.mark.skipif(find_spec("ml_dtypes") is None, reason="ml_dtypes is not installed"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are stopped by signals"),
]


def run(*command, faults=(), **environment):
    """The finished process of a command, on a machine that has a GPU with these faults."""
    path = os.pathsep.join([str(DRILL), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PATH": f"{DRILL}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "DRILL_FAULTS": json.dumps(faults),
        **environment,
    }
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


def variants(tmp_path, *arguments, faults):
    done = run(sys.executable, "-m", "bench.gpu.variants", "--out", tmp_path / "it.json", *arguments, faults=faults)
    assert (tmp_path / "it.json").exists(), done.stderr
    return done, json.loads((tmp_path / "it.json").read_text())


def row(family, kernel, formats, problem="sum_of_72", kind="float32"):
    return f"{family} {kind} {kernel} {formats} {problem} as planned"


FIRST, LAST = "NCX-OIX", "NXC-OXI"
#: Rows of one small problem.
PART = ("--dtype", "float32", "--match", f"({FIRST}|{LAST}) sum_of_72")


def test_variants_survive_faults(tmp_path):
    faults = [
        ("wrong", "^gather.cu correlate CHANNELS_ADJACENT=1"),
        ("sticky", "^gather.cu wgrad"),
        ("raises", "^simt.cu product.* A_BY_DEPTH=1.* WGRAD=1"),
        ("ends", "^simt.cu product.* TAPS_INNER=0.* WGRAD=0"),
    ]
    done, data = variants(tmp_path, "--family", "gather", "--family", "simt", *PART, faults=faults)
    assert done.returncode == 1, done.stderr
    states = {
        row("gather", "fprop", FIRST): "PASS",
        row("gather", "fprop", LAST): "WRONG",
        row("gather", "dgrad", FIRST): "PASS",
        row("gather", "dgrad", LAST): "WRONG",
        row("gather", "wgrad", FIRST): "RAISED",
        row("gather", "wgrad", LAST): "RAISED",
        row("simt", "fprop", FIRST): "PASS",
        row("simt", "fprop", LAST): "RAISED",
        row("simt", "dgrad", FIRST): "PASS",
        row("simt", "dgrad", LAST): "RAISED",
        row("simt", "wgrad", FIRST): "RAISED",
        row("simt", "wgrad", LAST): "PASS",
    }
    found = {name: fault["state"] for name, fault in data["faults"].items()}
    assert found == {name: state for name, state in states.items() if state != "PASS"}
    groups = {"gather float32": {"PASS": 2, "WRONG": 2, "RAISED": 2}, "simt float32": {"PASS": 3, "RAISED": 3}}
    assert data["groups"] == groups
    assert data["families"] == "depthwise,mma,gather"  # gather is always there
    sticky = data["faults"][row("gather", "wgrad", FIRST)]
    assert sticky["exit"] == 3 and "cudaErrorIllegalAddress" in sticky["failed"]
    refused = data["faults"][row("simt", "wgrad", FIRST)]
    assert "exit" not in refused and "CUDA_ERROR_INVALID_VALUE" in refused["failed"]
    assert "ended with status 9" in data["faults"][row("simt", "fprop", LAST)]["failed"]
    for fault in ("wgrad", FIRST), ("fprop", LAST):
        launch = data["faults"][row("simt", *fault)]["launch"]
        assert launch.startswith("simt.cu product A_BY_DEPTH=")
        assert all(f"{what} " in launch for what in ("static shared memory", "dynamic", "grid", "block", "arguments"))
        assert launch in done.stdout
    wrong = data["faults"][row("gather", "fprop", LAST)]["wrong"]
    assert wrong[0].startswith("sum_of_72, integers: ") and wrong[0] in done.stdout
    assert "| gather | **RAISED 2 of 6** |" in done.stdout and "| simt | **RAISED 3 of 6** |" in done.stdout


def test_variants_in_one_process(tmp_path):
    """Variants in one process, as compute-sanitizer runs them: rows that an error leaves undone must be named."""
    arguments = ("--here", "gather", "float32", *PART[2:])
    done, data = variants(tmp_path, *arguments, faults=[("sticky", "^gather.cu correlate CHANNELS_ADJACENT=1")])
    assert done.returncode == 3
    assert data["groups"] == {"gather float32": {"PASS": 1, "RAISED": 1}} and len(data["left_out"]) == 4
    assert "No time was left for 4 rows" in done.stdout
    done, data = variants(tmp_path, *arguments, faults=[])
    assert (done.returncode, data["groups"]) == (0, {"gather float32": {"PASS": 6}}), done.stdout


HANGS = """
import json, sys
from pathlib import Path
from bench.gpu.child import Child

child = Child("variant_calls", Path(sys.argv[1]))
replies = [child.ask("row", patience, group="gather float32", name=name) for name, patience in json.loads(sys.argv[2])]
child.end()
print(json.dumps(replies))
"""


def test_a_row_that_hangs(tmp_path):
    rows = [
        (row("gather", kernel, FIRST), patience) for kernel, patience in (("fprop", 90), ("wgrad", 5), ("fprop", 90))
    ]
    done = run(sys.executable, "-c", HANGS, tmp_path, json.dumps(rows), faults=[("hangs", "^gather.cu wgrad")])
    before, hung, after = json.loads(done.stdout)
    assert before == after and before["wrong"] == []
    assert "gave no answer in 5 s" in hung["failed"] and hung["launch"].startswith("gather.cu ")


ROWS = "unet_64 "


def test_ratio_survives_faults(tmp_path):
    faults = [("sticky", "^gather.cu wgrad.*STORAGE=float "), ("wrong", "^(gather|simt).cu .*STORAGE=double")]
    command = ("-m", "bench.gpu.ratio", "--out", tmp_path, "--match", ROWS)
    done = run(sys.executable, *command, faults=faults, CONVGRAD_CY_GPU="gather")
    assert done.returncode == 1, done.stderr
    data = json.loads((tmp_path / "gpu_ratio.json").read_text())
    assert data["about"]["gpu"] == "Imagined GPU" and data["left_out"] == []
    assert len(data["rows"]) > 10
    for found in data["rows"]:
        broken = found["kernel"] == "wgrad" and found["dtype"] == "float32"
        assert found["right"] == (not broken and not (found["dtype"] == "float64" and found["kernel"] == "dgrad"))
        assert ("cudaErrorIllegalAddress" in found.get("failed", "")) == broken
        if broken:
            assert found["exit"] == 3 and found["launch"].startswith("gather.cu wgrad ")
            assert found["launch"] in done.stdout
    assert "| float32 high; cuDNN without TF32 | 2.00 |" in (tmp_path / "gpu_ratio.md").read_text()


PARTS = {
    "VARIANTS": f"--family gather --family simt --dtype float32 --match {FIRST}.sum_of_72",
    "TESTS": " ".join(
        f"tests/gpu/test_device_values.py::test_{name}]"
        for name in ("exact[2d_1x1-float32-conv", "tensor_cores[2d_1x1-float16-fprop", "long_sum_of_ones[int32-wgrad")
    ),
    "RATIO": "--match unet_64",
}


@pytest.mark.slow(whole=True)
def test_all_steps(tmp_path):
    """All steps must run on a machine with a fault: the family that raised is off in ratio, and all is written."""
    here = {**PARTS, "CUPY_CACHE_DIR": str(tmp_path / "cache"), "DRILL_SANITIZER": "racecheck"}
    done = run("bash", "bench/gpu/all.sh", tmp_path, faults=[("sticky", "^simt.cu .*WGRAD=1")], **here)
    assert "failed: smoke sanitize\n" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
    found = json.loads((tmp_path / "gpu_variants.json").read_text())
    assert found["groups"] == {"gather float32": {"PASS": 3}, "simt float32": {"PASS": 2, "RAISED": 1}}
    assert "families: depthwise,mma,gather\n" in (tmp_path / "gpu_ratio.log").read_text()
    assert all(row["right"] for row in json.loads((tmp_path / "gpu_ratio.json").read_text())["rows"])
    sanitized = (tmp_path / "gpu_sanitize.log").read_text()
    assert "clean: memcheck gather float32\n" in sanitized
    assert "FAILED: memcheck simt float32, status 3, ========= ERROR SUMMARY: 0 errors\n" in sanitized
    assert "FAILED: racecheck gather float32, status 0, no summary\n" in sanitized
    for step in ("environment", "tests"):
        assert (tmp_path / f"gpu_{step}.log").stat().st_size > 10


def test_steps_of_the_script(tmp_path):
    here = {"CUPY_CACHE_DIR": str(tmp_path / "cache")}
    done = run("bash", "bench/gpu/all.sh", tmp_path, "environment", "all", **here)
    assert done.returncode == 2
    assert "a step must be one of environment, smoke, tests, ratio, sanitize, was all" in done.stderr
    done = run("bash", "bench/gpu/all.sh", tmp_path, "environment", "ratio", **here, LIMIT="1")
    assert done.returncode == 1 and "no time is left for: " in done.stdout


def test_the_plans_of_fifteen_minutes(tmp_path):
    """Without time, the plans must still name their steps and commands; each --match must have rows, new ones first."""
    here = {"CUPY_CACHE_DIR": str(tmp_path / "cache"), "LIMIT": "1"}
    first = run("bash", "bench/gpu/all.sh", tmp_path, "first", **here)
    steps = re.findall(r"^=== (\w+) \(", first.stdout, re.MULTILINE)
    assert steps == ["environment", "smoke", "tests", "ratio"], first.stdout + first.stderr
    assert "bench.gpu.variants --jobs 20" in first.stdout and "test_device_cupy.py" in first.stdout
    (command,) = re.findall(r"bench\.gpu\.ratio .*", first.stdout)
    matches = re.findall(r"--match (\S+)", command)
    assert all(map(gpu_rows.rows, matches))
    ordered = gpu_rows.rows(*matches)
    assert len(ordered) == len(gpu_rows.rows())
    assert ordered[0].group.layout == "NCX" and ordered[-1].group.name == "int32, which cuDNN has not"
    second = run("bash", "bench/gpu/all.sh", tmp_path, "second", **here)
    assert re.findall(r"^=== (\w+) \(", second.stdout, re.MULTILINE) == ["sanitize"], second.stdout + second.stderr


def test_the_plan_for_sanitizers_names_rows_with_tma():
    arguments = ["--family", "mma", "--dtype", "bfloat16", "--match", "engine", "--list"]
    listed = run(sys.executable, "-m", "bench.gpu.variants", *arguments)
    assert listed.stdout == "mma bfloat16\n", listed.stderr
