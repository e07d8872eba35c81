"""Convolutions of public complaints: the worker's check, the command, the table. No timing is judged."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench.complaints import COMPLAINTS, table
from bench.complaints import __main__ as command


def row_of(complaint="depthwise", jax=(0.4, 0.5, 0.3), ours=(0.01, 0.01, 0.01), **fields):
    return {"complaint": complaint, "seconds": {"jax": list(jax), "convgrad_cy": list(ours)}, "passed_on": {}, **fields}


@pytest.mark.jax
def test_every_complaint_is_a_function():
    """Each complaint must be a function with arrays of its type and a convolution in JAX's terms."""
    import jax

    from bench.complaints import cases

    for name, complaint in COMPLAINTS.items():
        function, operands = getattr(cases, name)(lambda *shape, c=complaint: jax.ShapeDtypeStruct(shape, c.dtype))
        assert "conv_general_dilated" in str(jax.make_jaxpr(function)(*operands)), name


@pytest.mark.jax
def test_command(capsys, tmp_path):
    file = tmp_path / "result.json"
    arguments = ["--cases", "chain,transposed_3d", "--seconds", "0", "--pairs", "2", "--output", str(file)]
    assert command.main(arguments) == 0
    assert "20 small convolutions" in capsys.readouterr().out
    chain, transposed = json.loads(file.read_text())["rows"]
    assert [len(chain["seconds"][side]) for side in ("jax", "convgrad_cy")] == [2, 2]
    assert 0 < transposed["errors"]["convgrad_cy"] <= 2e-5 and transposed["passed_on"] == {}


@pytest.fixture
def float64():
    """Enable 64 bits in JAX, as the worker's process does."""
    import jax

    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.jax
def test_a_wrong_result_is_not_timed(monkeypatch, float64):
    from bench.complaints import worker

    monkeypatch.setattr(worker, "TOLERANCES", {"float32": 1e-12})
    found = worker.Worker().answer({"do": "measure", "complaint": "chain", "seconds": 0, "pairs": 1})
    assert found["wrong"].startswith("jax: off by ") and "seconds" not in found
    assert worker.Worker().answer({"do": "measure", "complaint": "pool", "seconds": 0, "pairs": 1}) == {
        "failed": "KeyError: 'pool'"
    }


def test_lines():
    assert table.line(row_of()).endswith("400 ms       10 ms          40")
    assert table.line(row_of(passed_on={"operands of int8": 1})).endswith("; XLA computed it: operands of int8")
    wrong = {"complaint": "loop", "wrong": "jax: off by 1"}
    assert table.line(wrong).endswith("wrong: jax: off by 1")
    text = table.markdown({"rows": [row_of(), row_of("chain", jax=[2.5e-6], ours=[1e-6]), wrong]})
    assert "([jax 13800](https://github.com/jax-ml/jax/issues/13800)) | 400 ms | 10 ms | 40 |" in text
    assert "| 20 small convolutions, one after the other | 2.5 µs | 1 µs | 2.5 |" in text
    assert text.endswith("| – | – | – |\n")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--cases", "pool"], "'pool' is none of loop"),
        (["--threads", "0"], "--threads must be 1 to"),
        (["--pairs", "0"], "--pairs must be 1 or more"),
    ],
)
def test_wrong_arguments(capsys, arguments, said):
    with pytest.raises(SystemExit) as error:
        command.main(arguments)
    assert error.value.code == 2 and re.search(said, capsys.readouterr().err)
