"""The comparison of builds by the processor's counters, if this process may use some."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import counters

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def permitted():
    try:
        counters.Counters(counters.EVENTS)
    except (OSError, KeyError) as error:
        pytest.skip(f"no counters on this machine: {error}")


def test_counts():
    own = counters.Counters(counters.EVENTS)
    few, many = (own.of(lambda n=n: sum(range(n))) for n in (10_000, 1_000_000))
    assert few["instructions"] > 10_000 and few["cycles"] > 0
    assert many["instructions"] > 10 * few["instructions"]


@pytest.mark.checkout
def test_command_line(capfd):
    assert counters.main([str(ROOT), str(ROOT), "--match", "^tiny_8x8$", "--op", "fprop", "--turns", "1"]) == 0
    printed = capfd.readouterr().out.splitlines()
    assert [line.split()[:3] for line in printed if line.startswith("tiny")] == [
        ["tiny_8x8", "fprop", "NCX"],
        ["tiny_8x8", "fprop", "NXC"],
    ]
    assert printed[-1].startswith("mean of the ratios of cycles: ")
