"""Refusals of the shims under ``python -O``, which has no ``assert``, and ``-OO``, which has no docstrings."""

import json
import os
import subprocess
import sys

import pytest

#: Framework -> the module that replays its recording, and its expression for the outcome of ``call``.
REPLAYED = {
    "mindspore": ("test_shims_mindspore", "here(call)"),
    "tensorflow": ("test_shims_tensorflow", "here(call)"),
    "onednn": ("test_shims_onednn", "onednn_calls.answer(call, NAMES['v3'])"),
}
PROGRAM = """
import json, sys
from {module} import *
refused = [call for call, outcome in RECORDED.items() if outcome.error]
json.dump([[call, *{answer}[1:]] for call in refused], sys.stdout)
"""


@pytest.mark.parametrize("framework", REPLAYED)
def test_every_recorded_error(framework):
    """The classes and the messages must be the same as without the options."""
    pytest.importorskip("ml_dtypes", reason="the recordings have bfloat16, which needs ml_dtypes")
    module, answer = REPLAYED[framework]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def outcomes(*options):
        command = [sys.executable, *options, "-c", PROGRAM.format(module=module, answer=answer)]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        return json.loads(process.stdout)

    plain = outcomes()
    assert sum(bool(classes) for _, _, classes in plain) >= 150
    for option in ("-O", "-OO"):
        assert outcomes(option) == plain
