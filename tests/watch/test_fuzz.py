"""Calls drawn at random, legal and hostile, of all functions and shims: a right result or a documented exception.

``--seed`` draws other calls, ``--fuzz-calls`` more of them. A failure names the number of its call.
``PYTHONPATH=tests:tests/watch python tests/watch/fuzz.py SEED NUMBER 1`` repeats this call.
"""

import json
from collections import Counter

import pytest
from watched import needs_linux, run_child

pytestmark = needs_linux
#: Number of tests that share the calls and run at the same time.
PARTS = 4
#: All calls of a run: with --slow, and without.
CALLS, FEW_CALLS = 20_000, 2_000
#: A part in which more calls end their process is given up.
MOST_DEATHS = 5


@pytest.fixture
def seed(pytestconfig):
    return pytestconfig.getoption("--seed")


@pytest.fixture
def supervised(tmp_path):
    """The reports of fuzz.py about calls. If one ends the process, another process goes on with the next."""

    def run(seed, first, count, *mode):
        kinds, wrong, end = Counter(), [], first + count
        for _ in range(MOST_DEATHS):
            ended = run_child(tmp_path, "fuzz.py", seed, first, end - first, *mode, OMP_WAIT_POLICY="passive")
            if ended.code == 0:
                said = json.loads(ended.stdout)
                return kinds + Counter(said["figures"]), wrong + said["wrong"]
            number = int(ended.note.split()[0] or first)
            wrong.append(str(ended))
            kinds["dead"] += 1
            first = number + 1
            if first == end:
                return kinds, wrong
        return kinds, [*wrong, "and so on"]

    return run


@pytest.mark.parametrize("part", range(PARTS))
def test_calls(part, seed, supervised, figures, whole, pytestconfig):
    calls = pytestconfig.getoption("--fuzz-calls") or (CALLS if whole else FEW_CALLS)
    count = calls // PARTS
    kinds, wrong = supervised(seed, part * count, count)
    figures({f"fuzzed calls, {kind}": number for kind, number in kinds.items()})
    assert wrong == [], f"with --seed {seed}"
    assert kinds["checked result"] > count / 6 and kinds["refused: TypeError"] > count / 30


def test_deaths_are_seen(supervised):
    """Deaths must be seen: of three calls, the first crashes, the second never ends, the last has a wrong result."""
    kinds, wrong = supervised(1, 0, 3, "deaths")
    assert kinds["dead"] == 2 and len(wrong) == 3
    assert wrong[0].startswith("SIGSEGV during: 0 ") and wrong[1].startswith("SIGALRM during: 1 ")
    assert wrong[2].startswith("2: ")
