"""The simulation of many cores: its schedule is the one of the kernels, and its sums add up."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[2]))

import convgrad_cy as cg
from bench import cores, schedule, task_times
from bench.schedule import Cores, Timed, loop_seconds, predict
from convgrad_cy import _repeat
from convgrad_cy.cpu.machine.kernels import compiled

HERE = Cores("", 64, 8, 1 << 20, 1e9, 4e9, team=0.25, member=0.01)
tasks = st.lists(st.integers(1, 50).map(float), min_size=1, max_size=60)


@given(tasks=tasks, threads=st.integers(1, 70))
def test_schedule(tasks, threads):
    """A schedule must be as long as its longest task and its share, and no thread may idle while tasks are left."""
    seconds = loop_seconds(tasks, threads)
    assert seconds >= max(max(tasks), sum(tasks) / threads) - 1e-9
    assert seconds <= (sum(tasks) - max(tasks)) / min(threads, len(tasks)) + max(tasks) + 1e-9
    assert loop_seconds(tasks, 1) == sum(tasks)


def test_own_range_first():
    """A worker must take its own tasks first, then help where the other is: worker 0 begins with tasks 0 and 1."""
    assert loop_seconds([1.0, 1.0, 5.0, 5.0], 2) == 7.0
    assert loop_seconds([1.0, 1.0, 5.0, 2.0], 2) == 5.0
    assert loop_seconds([4.0] * 5, 4) == 8.0


@given(
    loops=st.lists(tasks, max_size=3), serial=st.floats(0, 5), threads=st.integers(1, 64), size=st.integers(0, 1 << 34)
)
def test_what_is_lost(loops, serial, threads, size):
    """The lost seconds must be the prediction's excess over its share of the time on one thread."""
    timed = Timed(loops, serial, size, size // 8)
    guess = predict(timed, timed.tasks, HERE, threads)
    assert guess.seconds == pytest.approx(sum(guess.lost.values()) + timed.seconds / threads)
    alone = predict(timed._replace(alone=True), timed.tasks, HERE, threads)
    assert alone.seconds == pytest.approx(timed.seconds)
    assert all(seconds >= -1e-9 for seconds in guess.lost.values())
    assert threads == 1 or guess.seconds >= timed.bytes(HERE, threads) / HERE.rate(threads)


def test_what_binds():
    def binds(loops, serial=0.0, once=0, threads=4):
        timed = Timed(loops, serial, once, 0)
        return predict(timed, timed.tasks, HERE, threads).binds

    assert binds([[10.0] * 5]) == "tasks"
    assert binds([[1.0] * 7 + [20.0]]) == "imbalance"
    assert binds([[10.0] * 4], serial=9.0) == "serial part"
    assert binds([[0.1] * 4] * 9) == "teams"
    assert binds([[1.0] * 4], once=1 << 33) == "bandwidth"
    more = predict(Timed([[10.0] * 4], 0.0, 0, 0), 20.0, HERE, 4)
    assert more.binds == "more work"


def test_bytes():
    """Data that fit the last caches must stay there. Data that all threads read must go into each of the caches."""
    timed = Timed([], 0.0, 3 << 20, 1 << 20)
    assert [timed.bytes(HERE, threads) for threads in (1, 8, 9, 64)] == [4 << 20, 4 << 20, 5 << 20, 11 << 20]
    assert Timed([], 0.0, 1 << 19, 1 << 17).bytes(HERE, 64) == (1 << 19) + 8 * (1 << 17) - ((1 << 19) + (1 << 20))
    assert schedule.bytes_of("fprop", cores.suites.rows(match="^tiny_8x8$")[0].case, 100)[1] % 4 == 0


def test_clock():
    """Each task must be timed once, in loops counted from 0, on one thread. The clock must then be off again."""
    x, w = np.ones((4, 32, 40, 40), np.float32), np.ones((32, 32, 3, 3), np.float32)
    seen = []

    def call():
        seen.append(cg.conv(x, w))

    with cg.num_threads(3):
        call()
        total, shared, times = compiled.time_tasks(call, 10_000)
        again = compiled.time_tasks(call, 10_000)
    assert shared > 0
    for loop in {loop for loop, *_ in times}:
        numbers = [task for one, task, *_ in times if one == loop]
        assert sorted(numbers) == list(range(len(numbers)))
    assert {loop for loop, *_ in times} == set(range(1 + max(loop for loop, *_ in times)))
    moments = [0, *(moment for *_, begin, end in times for moment in (begin, end)), total]
    assert moments == sorted(moments)
    assert 0 < sum(task_times.spans(times)) <= total
    assert len(again[2]) == len(times)
    assert all(np.array_equal(one, seen[0]) for one in seen)
    with pytest.raises(ValueError, match="most must be at least"):
        compiled.time_tasks(call, 1)
    with pytest.raises(KeyError):
        compiled.time_tasks(lambda: {}["none"], 1)
    call()  # a clock that is still on would write to freed memory


@pytest.mark.checkout
@pytest.mark.skipif(not _repeat.has_openmp(), reason="built without OpenMP: there is one thread")
def test_command_line(tmp_path, capsys):
    path = tmp_path / "cores.json"
    arguments = ["--match", "^tiny_8x8$", "--threads", "2,64", "--seconds", "0.01", "--json", str(path), "--measure"]
    assert cores.main([*arguments, "--machine", "xeon", "--memory", "100", "--team", "1"]) == 0
    printed = capsys.readouterr().out
    data = json.loads(path.read_text())
    assert data["threads"] == [1, 2, 64] and data["cores"]["memory_rate"] == 100e9
    assert [row["kernel"] for row in data["rows"]] == ["fprop", "dgrad", "wgrad"]
    assert all(set(row["threads"]) == {"1", "2", "64"} and row["threads"]["1"]["efficiency"] for row in data["rows"])
    assert "bottlenecks on 64 threads" in printed


def test_refused(capsys):
    for wrong in (["--threads", "2,x"], ["--threads", "0"], ["--match", "no such layer"]):
        with pytest.raises(SystemExit):
            cores.main(wrong)
    assert "list of numbers of threads" in capsys.readouterr().err
