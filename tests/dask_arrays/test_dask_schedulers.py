"""One result, bit for bit: with any scheduler, any number of workers, and after a worker was killed in mid-run."""

import numpy as np
import pytest
import scripts

pytestmark = pytest.mark.dask

#: The gradient of a filter from 96 blocks, and its hash. The numbers are real, so that each order of a sum shows.
GRADIENT = """
import os, signal, time
from hashlib import sha256
import dask.array as da
import numpy as np
import convgrad_cy.dask as cd

def chunk(block_info=None):
    place = block_info[None]["array-location"]
    time.sleep(SLOW)
    shape = [end - begin for begin, end in place]
    return np.random.default_rng([begin for begin, _ in place]).standard_normal(shape).astype("float32")

def gradient():
    chunks = (1,) * 6, (4,), (8,) * 4, (8,) * 4
    x = da.map_blocks(chunk, chunks=chunks, dtype="float32", meta=np.empty((0,) * 4, "float32"))
    w = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype("float32")
    y = cd.conv(x, w, padding=1)
    return cd.conv_backward_filter(x, y, w.shape, padding=1)

def hashed(dw):
    return sha256(dw.tobytes()).hexdigest()[:10]
"""
LOCAL = f"""{GRADIENT}
SLOW = 0
for scheduler in ("synchronous", "threads"):
    print(hashed(gradient().compute(scheduler=scheduler)))
print(hashed(gradient().compute(scheduler="threads", num_workers=7)))
"""
CLUSTERS = f"""{GRADIENT}
SLOW = 0.02
from dask.distributed import Client, LocalCluster

def finished(dask_scheduler):
    return sum(task.state == "memory" or task.state == "released" for task in dask_scheduler.tasks.values())

if __name__ == "__main__":
    for workers, kills in ((1, False), (2, False), (2, True)):
        options = dict(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0)
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            future = client.compute(gradient())
            if kills:
                victim, *_ = before = client.run(os.getpid).values()
                while client.run_on_scheduler(finished) < 40:
                    time.sleep(0.01)
                assert not future.done(), "the gradient was ready before the worker was killed"
                os.kill(victim, signal.SIGKILL)
            print(hashed(future.result()))
            if kills:
                assert victim not in client.run(os.getpid).values()
"""


def test_one_hash(tmp_path):
    pytest.importorskip("distributed")
    local, clusters = scripts.run(tmp_path, LOCAL), scripts.run(tmp_path, CLUSTERS, timeout=300)
    assert len(local) == len(clusters) == 3
    assert {*local} == {*clusters} and len({*local}) == 1


def test_the_sum_is_a_fixed_tree():
    """Partial sums must be added in the order of their blocks, four images or two blocks at a time."""
    import dask.array as da

    import convgrad_cy as cg
    import convgrad_cy.dask as cd

    random = np.random.default_rng(0)
    x, dy = (random.standard_normal((9, 1, 4)).astype("float32") for _ in "xy")
    chunks = (1, 1, 2)
    lazy = da.from_array(x, chunks=chunks), da.from_array(dy, chunks=chunks)
    found = cd.conv_backward_filter(*lazy, (1, 1, 1), algorithm="direct").compute(scheduler="threads")
    parts = [
        [cg.conv_backward_filter(x[n : n + 1, :, p : p + 2], dy[n : n + 1, :, p : p + 2], (1, 1, 1)) for p in (0, 2)]
        for n in range(9)
    ]
    while len(parts) > 1:
        groups = [[part for row in parts[n : n + 4] for part in row] for n in range(0, len(parts), 4)]
        parts = [[sum(group[1:], group[0])] for group in groups]
    assert found.tobytes() == parts[0][0].tobytes()
