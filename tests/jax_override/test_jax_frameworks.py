"""Unchanged models of Flax, Haiku, Equinox and Keras: nearly all of their convolutions are computed here."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from frameworks import PACKAGES

pytestmark = pytest.mark.jax
SCRIPT = Path(__file__).with_name("frameworks.py")
#: The greatest part of a model's convolutions that may go to XLA.
DECLINED = 0.02


@pytest.mark.parametrize("name", PACKAGES)
def test_a_model_as_it_is(name):
    if find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed")
    done = subprocess.run([sys.executable, SCRIPT, name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    lowered, passed_on = sum(found["lowered"].values()), sum(found["passed_on"].values())
    assert lowered >= 7 and found["computed"] >= lowered
    assert passed_on <= DECLINED * (lowered + passed_on), found["passed_on"]
