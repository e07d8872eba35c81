"""Tests that do a small part of their work, or all of it with --slow. Their figures are printed at the end."""

from collections import Counter

import pytest

_PREFIX = "watch: "


@pytest.fixture(scope="session")
def whole(pytestconfig):
    """Whether the tests run in full."""
    return pytestconfig.getoption("--slow")


@pytest.fixture
def figures(record_property):
    """A function that takes the counts of a test, by names. The sums are printed after all tests."""

    def record(counted):
        for name, number in counted.items():
            record_property(_PREFIX + name, number)

    return record


def pytest_terminal_summary(terminalreporter):
    sums = Counter()
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, number in report.user_properties:
                if name.startswith(_PREFIX):
                    sums[name] += number
    for name, number in sums.items():
        terminalreporter.write_line(f"{name}: {number:,}")
