"""Memory in addition to the arrays: in proportion to these, and to the threads that have a task."""

import json

import pytest
from watched import built, needs_linux, run_child

pytestmark = [needs_linux, pytest.mark.checkout]
#: The bound for each layer of the benchmark's suites and each operation: TIMES the bytes that the arrays have in the
#: type of their sums, and PER_THREAD bytes for each thread.
TIMES, PER_THREAD = 4, 3 << 20
#: A packed filter is larger by at most this factor, if each output fills a vector alone.
VECTOR = 16
#: Without --slow, one layer in EVERY runs.
EVERY = 40
#: Most bytes of a thread without a task: its place in a few tables.
PLACE = 1 << 10


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return built("allocations.c", tmp_path_factory.mktemp("allocations"))


@pytest.fixture
def counted(library, tmp_path):
    """[call, additional bytes, bytes of the arrays], as count_scratch.py prints them."""

    def run(*arguments):
        ended = run_child(tmp_path, "count_scratch.py", *arguments, preload=library, OMP_WAIT_POLICY="passive")
        assert ended.code == 0, str(ended)
        return json.loads(ended.stdout)

    return run


def bound(call, own, threads):
    return TIMES * own * (2 if "float16" in call else 1) + PER_THREAD * threads  # bfloat16, too


@pytest.mark.parametrize("threads", [1, 2, 8, 64])
def test_bound(threads, counted, figures, whole):
    every = 1 if whole and threads == 2 else 4 if whole else EVERY
    dtypes = ["float32"] if every == 1 else ["float32", "bfloat16", "float64"]
    rows = counted("suites", threads, every, threads % every, *dtypes)
    figures({"calls whose memory was counted": len(rows)})
    assert any(beside > own for _, beside, own in rows), "no call takes much memory: is it counted?"
    assert [row for row in rows if row[1] > bound(row[0], row[2], threads)] == []


@pytest.mark.parametrize("threads", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_limit(threads, counted, figures):
    """Beyond the limit, a call must take only memory of each thread, and the filter that the sum itself packs.

    This filter is filled up to whole vectors. `explain` counts the rest, but not the filter that is packed for values
    out of the range of Winograd's algorithm.
    """
    rows = counted("limited", threads)
    figures({"calls with a limit whose memory was counted": len(rows)})
    assert {call.rpartition(" ")[2] for call, *_ in rows} >= {
        "direct",
        "exchanged",
        "overlaps",
        "small_groups",
        "winograd",
    }
    own = PER_THREAD * threads
    assert [row for row in rows if row[1] > min(row[2], row[3]) + VECTOR * row[4] + own] == []


@pytest.mark.parametrize("algorithm", ["direct", "auto", "winograd"])
def test_threads_without_a_task_take_nothing(algorithm, counted):
    """64 more threads must take no more memory for a small layer with fewer than 64 tasks."""
    rows = counted("small", algorithm, 64, 128)
    assert rows
    assert [row for row in rows if row[2] > row[1] + 64 * PLACE] == []
