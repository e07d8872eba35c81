"""``--without`` of ``python -m bench.extremes``: rows whose planned route is slower than another one."""

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import convgrad_cy as cg

from . import machine, table
from .both_ways import FINDING, rows_of_layer
from .summary import geometric_mean, grouped

#: The fields of a row in a file. A field that a row lacks is null there.
FIELDS = ("suite", "layer", "kernel", "layout", "dtype", "without", "usual", "other")
FIELDS += ("seconds", "other_seconds", "wrong", "failed")
LAYER, ROUTE = 32, 24


def gain(row):
    """How many times faster the other route is; None if a result was wrong or missing."""
    return row["seconds"] / row["other_seconds"] if "seconds" in row else None


def findings(rows):
    """The rows whose other route is faster, the greatest gain first."""
    return sorted((row for row in rows if (gain(row) or 0) > FINDING), key=gain, reverse=True)


def troubles(rows):
    return [row for row in rows if "seconds" not in row]


HEADER = f"{'layer':<{LAYER}}{'':<21}{'chosen':<{ROUTE}}{'other':<{ROUTE}}{'ms':>9}{'ms':>10}{'faster':>8}"


def line(row):
    """A row of the table; "faster" is how many times faster the other route is."""
    where = f"{row['layer']:<{LAYER}}{row['kernel']:<6}{row['layout']:<4}{row['dtype']:<11}"
    routes = f"{row['usual']:<{ROUTE}}{row['other']:<{ROUTE}}"
    if "seconds" not in row:
        return f"{where}{routes}{row.get('wrong') or row['failed']}"
    times = f"{1e3 * row['seconds']:9.3f}{1e3 * row['other_seconds']:10.3f}"
    return f"{where}{routes}{times}{gain(row):8.2f}{' !' if gain(row) > FINDING else ''}"


def conclusion(rows):
    """The lines after the table: how much each family and form helps, and the findings."""
    lines = [f"{'without':<16}{'rows':>6}{'findings':>10}   times as long without it: mean, least, most"]
    for (name,), group in grouped(rows, "without").items():
        times = [1 / gain(row) for row in group if gain(row)]
        spread = f"{geometric_mean(times):8.2f}{min(times):8.2f}{max(times):8.2f}" if times else ""
        lines.append(f"{name:<16}{len(group):6}{len(findings(group)):10}   {spread}")
    if troubled := troubles(rows):
        lines += ["", "wrong or failed:", *map(line, troubled)]
    found = findings(rows)
    count = f"{len(found)} findings in {len(rows)} comparisons: another route is more than {FINDING} times faster"
    return [*lines, "", count, *map(line, found)]


def start(processors, threads):
    """Begin a process that measures, on processors that no other such process uses."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the others
    mine = processors.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, mine)
    cg.set_num_threads(threads)


def run(layers, processors, options):
    """Measure the rows of all layers and print each one. Ctrl-C ends the run: the result has the rows until then."""
    data = {"machine": machine.about()}
    data |= {name: getattr(options, name) for name in ("without", "sets", "count", "seed", "threads", "seconds")}
    data |= {"fields": FIELDS, "rows": []}
    spawn = multiprocessing.get_context("spawn")
    shares = spawn.SimpleQueue()
    for i in range(options.processes):
        shares.put(processors[i * options.threads :][: options.threads])
    pool = ProcessPoolExecutor(options.processes, spawn, start, (shares, options.threads))
    progress = table.Progress(len(layers))
    print(f"{len(layers)} layers, {options.processes} processes of {options.threads} threads\n\n{HEADER}")
    try:
        for done, found in enumerate(pool.map(partial(rows_of_layer, options=options), layers), 1):
            data["rows"] += found  # before they are printed: an interrupted result has all rows that were seen
            progress.clear()
            for row in found:
                print(line(row), flush=True)
            progress.show(done, layers[done - 1].name)
    except KeyboardInterrupt:
        data["stopped"] = "interrupted"
    except BrokenProcessPool:
        data["stopped"] = f"a process crashed; {len(data['rows'])} rows were measured before"
    finally:
        progress.clear()
        pool.shutdown(cancel_futures=True)
    if "stopped" in data:
        print(data["stopped"])
    data["findings"] = len(findings(data["rows"]))
    return data
