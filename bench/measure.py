"""One row: verify each library's result, then time all of them in turn."""

import zlib

import numpy as np

from . import verify
from .peers import OURS
from .processes import Lost
from .worker import Operands

#: Rounds in which the libraries take turns on a row. Every second round goes backwards (ABBA), so that no library is
#: always the first.
ROUNDS = 4
#: A first call that takes this many seconds is not repeated: its time is the result.
SLOW = 2.0
#: A call is left out above this many seconds, as estimated from the library's other slow calls.
TOO_LONG = 10.0
#: Seconds spent on the register tile in each round, and before the first row of a type.
TILE_SECONDS, FIRST_TILE_SECONDS = 0.005, 0.2


class Bench:
    """The worker processes, and the files of the layer at hand."""

    def __init__(self, processes, folder):
        self.processes = processes
        self.folder = folder
        self.prepared = {}
        #: Greatest FLOP per second of a library's slow calls, by (library, kernel, layout, type).
        self.slow_rates = {}
        #: FLOP per second of the bare tile, by type: the best rate so far, because it is a constant of the machine.
        self.tiles = {}

    def ask(self, name, do, **fields):
        """The reply of a process. A lost process gives a reply, too: {"failed": reason}."""
        try:
            return self.processes[name].ask(do, **fields)
        except Lost as lost:
            return {"failed": str(lost)}

    def about(self):
        return {name: self.ask(name, "about") for name in self.processes}

    def copy_rate(self, seconds=0.5):
        """Bytes per second of a copy in memory."""
        return self.ask(OURS, "copy", seconds=seconds).get("rate")

    def prepare(self, row):
        """Write the tensors that the row needs, if they are not there: all rows of a layer use the same files."""
        case = row.case
        operands = Operands(self.folder, case)
        key = (case.name, case.dtype)
        if key not in self.prepared:
            rng = np.random.default_rng(zlib.crc32(case.name.encode()))
            for name in "xwy":
                operands.write(name, verify.draw(operands.shapes[name], case.dtype, rng))
            self.prepared = {key: set()}
        if row.kernel not in self.prepared[key]:
            reply = self.ask(OURS, "reference", **self.of(row))
            if reply:
                raise verify.Wrong(f"no float64 result to compare with: {reply}")
            rng = np.random.default_rng(1)
            verify.spot_check(case, row.kernel, operands.read(row.kernel), *operands.tensors(), rng)
            self.prepared[key].add(row.kernel)

    def of(self, row):
        """The fields of a request about a row."""
        return {"folder": str(self.folder), "case": row.case.message(), "kernel": row.kernel}

    def verified(self, name, row):
        """The reply to one run in a worker, with a judgement of the result.

        The reply says why a row is not to be timed.
        """
        key = (name, row.kernel, row.case.layout, row.case.dtype)
        rate = self.slow_rates.get(key, float("inf"))
        if row.case.flop / rate > TOO_LONG:
            return {"skipped": f"left out: slower than {TOO_LONG:.0f} s a call", "rate": rate}
        reply = self.ask(name, "load", **self.of(row))
        if reply:
            return reply
        reply = self.ask(name, "run")
        if "error" not in reply:
            return reply
        if reply["seconds"] >= SLOW:
            self.slow_rates[key] = max(self.slow_rates.get(key, 0.0), row.case.flop / reply["seconds"])
        fault = verify.fault(reply["error"], row.case.dtype, 1 if name == OURS else verify.PEER_SLACK)
        if fault is None:
            return reply
        # JSON has no NaN.
        return {"wrong": fault, "error": reply["error"] if np.isfinite(reply["error"]) else None}

    def time_tile(self, dtype, seconds):
        rate = self.ask(OURS, "tile", dtype=dtype, seconds=seconds).get("rate", 0.0)
        self.tiles[dtype] = max(self.tiles.get(dtype, 0.0), rate)

    def measure(self, row, seconds):
        """The result of a row for each library; the tile is timed in the same rounds."""
        dtype = row.case.dtype
        if dtype not in self.tiles:
            self.time_tile(dtype, FIRST_TILE_SECONDS)
        self.prepare(row)
        results = {name: self.verified(name, row) for name in self.processes}
        timed = []
        for name, result in results.items():
            if "error" not in result or "wrong" in result:
                continue
            result["calls"] = 1
            if result["seconds"] < SLOW:
                # The first call also made the plan that later calls reuse, so its time does not count.
                result["seconds"], result["calls"] = float("inf"), 0
                timed.append(name)
        for turn in range(ROUNDS):
            for name in timed[:: 1 if turn % 2 == 0 else -1]:
                result, reply = results[name], self.ask(name, "time", seconds=seconds / ROUNDS)
                if "seconds" not in reply:
                    results[name] = reply
                    continue
                result["seconds"] = min(result["seconds"], reply["seconds"])
                result["calls"] += reply["calls"]
                if name == OURS:
                    self.time_tile(dtype, TILE_SECONDS)
            timed = [name for name in timed if "seconds" in results[name]]
        return {**description(row), "tile": self.tiles[dtype], "results": results}


def best_of(before, after):
    """The results of a row that was measured twice: each library's faster result, or its failure if it failed once."""
    results = {}
    for name, result in after["results"].items():
        both = [before["results"][name], result]
        failed = [one for one in both if "seconds" not in one]
        calls = sum(one.get("calls", 0) for one in both)
        results[name] = failed[0] if failed else {**min(both, key=lambda one: one["seconds"]), "calls": calls}
    return {**after, "tile": max(before["tile"], after["tile"]), "results": results}


def description(row):
    """The fields of a row of a result that are known before it is measured."""
    layer, case = row.layer, row.case
    return {
        "suite": layer.suite,
        "layer": layer.name,
        "count": layer.count,
        "kernel": row.kernel,
        "function": case.function(row.kernel),
        "layout": case.layout,
        "dtype": case.dtype,
        "flop": case.flop,
        "bytes": case.bytes,
    }
