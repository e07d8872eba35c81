"""Random calls of oneDNN Graph's convolutions, and the real library's answers.

    python -m venv PREFIX
    PREFIX/bin/pip install onednn onednn-devel numpy ml_dtypes
    PREFIX/bin/python tests/conformance/record_onednn.py tests/conformance/onednn.json

writes the recording that is checked in. g++ builds the driver at the first run. ``--random N --seed S`` writes N other
calls instead. A call is correct by construction, or has one mistake.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

import onednn_library
import replay
from onednn_mistakes import LISTS, MISTAKES
from onednn_random import TAKES, correct_call

KINDS = tuple(TAKES)


def wrong_call(rng, kind, change):
    call = correct_call(rng, kind)
    change(rng, call)
    return call


def four_dimensional(rng, kind):
    """A call with four spatial axes, all of extent one."""
    ones = [1] * 4
    call = correct_call(rng, kind)
    for name in LISTS:
        call.attributes[name] = [0] * 4 if "pads" in name else ones
    for name in ("auto_pad", "groups", "output_padding"):
        call.attributes.pop(name, None)
    takes, shape = TAKES[kind]
    if shape:
        call.attributes[shape] = [1] * 6
    call.tensors = [["float32", [1] * 6] for _ in takes]
    return call


def recording_calls():
    """The calls of the recording: of each kind, correct ones, and one with each mistake."""
    rng = random.Random(2026)
    calls = [correct_call(rng, kind) for kind in KINDS for _ in range(120)]
    calls += [wrong_call(rng, kind, mistake) for mistake in MISTAKES for kind in KINDS]
    return calls + [four_dimensional(rng, kind) for kind in KINDS]


def random_calls(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.choice(KINDS)
        yield wrong_call(rng, kind, rng.choice(MISTAKES)) if rng.random() < 0.4 else correct_call(rng, kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--random", type=int, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=Path, metavar="JSON", help="the calls of this list, whatever they are")
    arguments = parser.parse_args()
    variables = onednn_library.environment(sys.prefix)
    if any(os.environ.get(name) != value for name, value in variables.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **variables})
    if arguments.again:
        expressions = json.loads(arguments.again.read_text("utf-8"))
    else:
        calls = random_calls(arguments.seed, arguments.random) if arguments.random else recording_calls()
        expressions = [call.expression(3 * i) for i, call in enumerate(calls)]
    library = onednn_library.Library()
    names = {kind: library.operation(kind) for kind in KINDS} | {"t": replay.tensor}
    outcomes = {expression: replay.evaluate(expression, names) for expression in expressions}
    replay.save(arguments.path, f"oneDNN {library.version} of the PyPI package onednn, CPU", outcomes)
    values = sum(outcome.array is not None for outcome in outcomes.values())
    print(f"{values} values and {len(outcomes) - values} errors written to {arguments.path}")


if __name__ == "__main__":
    main()
