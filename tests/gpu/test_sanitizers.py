"""Kernels under AddressSanitizer and UndefinedBehaviorSanitizer: each operand has memory of exactly its size."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from sim.executor import COMPILER

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

FOLDER = Path(__file__).parent
#: Problems whose values are tested in all families: padding and strides, groups, channel tails, several tiles.
PROBLEMS = ("2d_stride2_dilation3", "2d_depthwise_multiplier3", "2d_channels65", "3d_mixed_stride")
VALUES = f"test_integers and (bfloat16 or float64) and ({' or '.join(PROBLEMS)})"


@cache
def library():
    """The sanitizers' library, which has to be loaded first; None if the compiler has none."""
    name = subprocess.run([COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return name if os.path.isabs(name) else None


def run(*arguments):
    if library() is None:
        pytest.skip("the compiler has no libasan.so")
    environment = {**os.environ, "LD_PRELOAD": library(), "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=FOLDER.parents[1])


@pytest.mark.parametrize(
    "tests",
    [
        [f"{FOLDER}/test_simulated_values.py", "-k", VALUES],
        [f"{FOLDER}/test_mma.py", "-k", "test_sum_of_several_stages or test_strides or test_more_phases"],
    ],
    ids=("values", "mma"),
)
def test_values(tests):
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--slow", *tests)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    "mistake, message", [(4, "use-after-poison"), (5, "heap-buffer-overflow")], ids=("shared memory", "an operand")
)
def test_access_beyond(mistake, message):
    """The kernel `reverse` of sim/examples.cu must be caught when it writes one element too far."""
    path = [str(FOLDER), str(FOLDER.parent)]
    done = run(
        "-c",
        f"import sys; sys.path[:0] = {path}; import test_simulator; test_simulator.reverse({mistake}, 'ascending')",
    )
    assert done.returncode != 0
    assert message in done.stderr, done.stderr
