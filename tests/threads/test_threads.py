"""The number of threads: who asks for it, and for whom. test_teams.py tests its use in the kernels."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_invariance import run_python

import convgrad_cy as cg
from convgrad_cy import _repeat, cpu
from convgrad_cy.settings import threads

needs_openmp = pytest.mark.skipif(not _repeat.has_openmp(), reason="built without OpenMP: there is one thread")


@pytest.fixture(autouse=True)
def default_number():
    yield
    cg.set_num_threads(None)


@needs_openmp
def test_set():
    default = cg.get_num_threads()
    cg.set_num_threads(3)
    assert cg.get_num_threads() == cpu.threads() == cpu.this_machine().threads == 3
    cg.set_num_threads(np.int64(2))
    assert cg.get_num_threads() == 2
    cg.set_num_threads(None)
    assert cg.get_num_threads() == default


@needs_openmp
def test_nested():
    """The innermost block must count, and none may change the number for all threads."""
    cg.set_num_threads(7)
    again = cg.num_threads(2)
    with again:
        assert cg.get_num_threads() == 2
        with cg.num_threads(3), again:
            assert cg.get_num_threads() == 2
            with again:
                cg.set_num_threads(5)
                assert cg.get_num_threads() == 2
            assert cg.get_num_threads() == 2
        assert cg.get_num_threads() == 2
    assert cg.get_num_threads() == 5
    with again:
        assert cg.get_num_threads() == 2


@needs_openmp
def test_exception():
    cg.set_num_threads(7)
    with pytest.raises(KeyError), cg.num_threads(2), cg.num_threads(3):
        raise KeyError
    assert cg.get_num_threads() == 7


@needs_openmp
def test_python_threads():
    """A block must hold for its own thread, and ``set_num_threads`` for all. Several threads may use one object."""
    shared = cg.num_threads(2)
    meet = threading.Barrier(2, timeout=60)

    def work(own):
        meet.wait()
        with shared, cg.num_threads(own):
            meet.wait()
            inside = cg.get_num_threads()
            meet.wait()
        with shared:
            return inside, cg.get_num_threads()

    with cg.num_threads(9), ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (3, 4))) == [(3, 2), (4, 2)]
        assert cg.get_num_threads() == 9
    with ThreadPoolExecutor(1) as pool:
        pool.submit(cg.set_num_threads, 6).result()
        assert cg.get_num_threads() == pool.submit(cg.get_num_threads).result() == 6


@needs_openmp
def test_asyncio():
    """Tasks that take turns must each see their own number. A task that is created in a block must see the block's."""

    async def work(own):
        with cg.num_threads(own):
            await asyncio.sleep(0)
            inside = cg.get_num_threads()
            await asyncio.sleep(0)
        return inside, cg.get_num_threads()

    async def main():
        with cg.num_threads(2):
            return await asyncio.gather(work(3), work(4)), cg.get_num_threads()

    assert asyncio.run(main()) == ([(3, 2), (4, 2)], 2)


@needs_openmp
def test_quota(monkeypatch):
    """The quota must limit OpenMP's number, but not one that was asked for."""
    monkeypatch.setattr(threads, "_quota", 1)
    assert cg.get_num_threads() == 1
    cg.set_num_threads(3)
    assert cg.get_num_threads() == 3
    with cg.num_threads(4):
        assert cg.get_num_threads() == 4


@pytest.mark.parametrize(("name", "value"), (("_is_child", True), ("_has_openmp", False)))
def test_always_one(name, value, monkeypatch):
    """There must be one thread after a fork, and without OpenMP."""
    monkeypatch.setattr(threads, name, value)
    cg.set_num_threads(3)
    with cg.num_threads(4):
        assert cg.get_num_threads() == cpu.this_machine().threads == 1


FORK = """
import os, warnings
import convgrad_cy as cg
from loops import results

warnings.simplefilter("ignore", DeprecationWarning)  # Python's own warning that a process with threads forks
cg.set_num_threads(3)
expected = results(2)
with cg.num_threads(2):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if cg.get_num_threads() == 1 and results(5) == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), results(5) == expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork():
    run = run_python("-c", FORK)
    assert (run.stdout.split(), run.returncode) == (["0", "True"], 0), run.stderr


@pytest.mark.parametrize("function", [cg.set_num_threads, cg.num_threads], ids=["set_num_threads", "num_threads"])
@pytest.mark.parametrize(
    "n, error, said",
    [
        (0, ValueError, "n must be at least 1, not 0"),
        (-2, ValueError, "n must be at least 1, not -2"),
        (4097, ValueError, "n must be at most 4096, not 4097"),
        (1 << 70, ValueError, "n must be less than 2**62, not 1180591620717411303424"),
        (2.0, TypeError, "n must be an integer{}, not 2.0"),
        ("2", TypeError, "n must be an integer{}, not '2'"),
        (True, TypeError, "n must be an integer{}, not True"),
        ((2,), TypeError, "n must be an integer{}, not (2,)"),
    ],
)
def test_refused(function, n, error, said):
    before = cg.get_num_threads()
    with pytest.raises(error) as caught:
        function(n)
    assert str(caught.value) == said.format(" or None" if function is cg.set_num_threads else "")
    assert cg.get_num_threads() == before


def test_block_of_no_number():
    with pytest.raises(TypeError, match=r"^n must be an integer, not None$"):
        cg.num_threads(None)
