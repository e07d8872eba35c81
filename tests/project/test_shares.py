"""``--share`` and ``--seed`` select equal tests each time, and at least one set of parameters of each test."""

from pathlib import Path
from types import SimpleNamespace

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


def item(name, parameters=""):
    return SimpleNamespace(
        path="a.py", name=f"{name}{parameters}", originalname=name, nodeid=f"a.py::{name}{parameters}"
    )


#: Two tests: one has 50 sets of parameters, one has none.
ITEMS = [*(item("test_many", f"[{number}]") for number in range(50)), item("test_one")]


@pytest.fixture
def share(pytestconfig):
    """The function that takes a share of tests."""
    (module,) = (
        plugin
        for plugin in pytestconfig.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", None) == str(CONFTEST)
    )
    return lambda items, part, seed: [item.nodeid for item in module._share(items, part, seed)]


def test_a_share_is_the_same_each_time(share):
    """A share must follow from names and seed alone: it is equal in every order of tests and on every machine."""
    expected = [*(f"a.py::test_many[{number}]" for number in (16, 33, 37, 15, 4)), "a.py::test_one"]
    assert share(ITEMS, 0.1, 0) == expected
    assert sorted(share(ITEMS[::-1], 0.1, 0)) == sorted(expected)


def test_a_seed_takes_others(share):
    assert len({tuple(share(ITEMS, 0.1, seed)) for seed in range(5)}) == 5


def test_everything_is_a_share_of_one(share):
    assert set(share(ITEMS, 1, 3)) == {item.nodeid for item in ITEMS}
