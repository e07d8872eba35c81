"""``python -m bench.cores``: the gain of the layers of suites.txt from 1 to 128 threads, simulated from one core.

Each task of a call is timed on one thread, with the plan for many threads. schedule.py simulates the schedule on a
machine with given figures. ``--measure`` also times real threads, as far as this machine has them.
"""

import argparse
import sys
from pathlib import Path
from statistics import median

import convgrad_cy as cg
from convgrad_cy import cpu

from . import machine, results, suites
from .__main__ import listed, regex
from .case import KERNELS, LAYOUTS
from .peers.convgrad_cy import Library
from .schedule import MACHINES, Cores, efficiency, has_enough, mean_efficiency, predict
from .summary import grouped
from .task_times import RowCall, loop_of_nothing, team_seconds

THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
COPY_SECONDS = 0.3


def numbers(text):
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers of threads, with commas between them")
    return sorted({1, *found})


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.cores", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--suite", type=listed(suites.NAMES), default=suites.NAMES, help="suites (all)")
    add("--op", type=listed(KERNELS), default=KERNELS, help="kernels (all)")
    add("--layout", type=listed(LAYOUTS), default=["NXC"], help="of NCX, NXC (NXC)")
    add("--match", type=regex, default="", metavar="REGEX", help="layers whose name has this")
    add("--threads", type=numbers, default=list(THREADS), help=f"({','.join(map(str, THREADS))})")
    add("--machine", choices=("here", *MACHINES), default="epyc", help="whose figures are taken (%(default)s)")
    add("--memory", type=float, metavar="GB/s", help="from memory to all cores together")
    add("--core-memory", type=float, metavar="GB/s", help="from memory to one core alone")
    add("--sharing", type=int, help="cores that share a last cache")
    add("--cache", type=float, metavar="MB", help="of one last cache")
    add("--team", type=float, metavar="US", help="microseconds to start and end a team of two")
    add("--member", type=float, metavar="US", help="microseconds that each further thread adds")
    add("--seconds", type=float, default=0.05, help="spent on each row and plan (%(default)s)")
    add("--measure", action="store_true", help="time real threads, too")
    add("--json", type=Path, help="write the result to this file")
    add("--plot", type=Path, help="write the plot to this file")
    return parser, parser.parse_args(argv)


def here():
    """This machine: its processors share the last cache. Memory is as fast as a copy by all processors together.

    The cost of a team of two threads is measured, too.
    """
    count = machine.about()["processors"]
    rates = []
    for threads in (1, count):
        with cg.num_threads(threads):
            rates.append(Library(threads).copy(COPY_SECONDS))
    return Cores("this machine", count, count, cpu.this_machine().cache_bytes, *rates, team_seconds())


def cores_of(options):
    """The ``Cores`` that the options describe."""
    cores = here() if options.machine == "here" else MACHINES[options.machine]
    given = {
        "memory_rate": options.memory and options.memory * 1e9,
        "core_rate": options.core_memory and options.core_memory * 1e9,
        "sharing": options.sharing,
        "cache": options.cache and options.cache * 1e6,
        "team": None if options.team is None else options.team * 1e-6,
        "member": None if options.member is None else options.member * 1e-6,
    }
    return cores._replace(**{name: value for name, value in given.items() if value is not None})


def row_result(row, options, cores):
    """The findings about a row, as plain data."""
    call = RowCall(row)
    alone = call.tasks(1, options.seconds).seconds
    found = {
        "suite": row.layer.suite,
        "layer": row.case.name,
        "kernel": row.kernel,
        "layout": row.case.layout,
        "products": row.case.flop // 2,
        "alone": alone,
        "threads": {},
    }
    for threads in options.threads:
        timed = call.tasks(threads, options.seconds)
        guess = predict(timed, call.tasks(1, options.seconds).tasks, cores, threads)
        found["threads"][str(threads)] = one = {
            "efficiency": efficiency(guess, alone, threads),
            "tasks": max(map(len, timed.loops), default=0),
            "binds": guess.binds,
        }
        if options.measure and threads <= machine.about()["processors"]:
            one["measured"] = call.measured(threads, options.seconds)
    return found


def line_of(found):
    cells = [f"{one['efficiency']:6.2f}" for one in found["threads"].values()]
    last = list(found["threads"].values())[-1]
    name = f"{found['layer']:<34}{found['kernel']:<6}{found['layout']:<4}"
    return f"{name}{found['alone'] * 1e6:9.0f}{''.join(cells)}  {last['tasks']:5d} {last['binds']}"


def means(rows, threads):
    """Mean efficiencies for several numbers of threads, as text."""
    found = [mean_efficiency(rows, number) for number in threads]
    return "".join("     –" if mean is None else f"{mean:6.2f}" for mean in found)


def slower(rows, many, few, enough):
    """Rows that are slower on many threads than on few.

    ``enough``: rows with enough work for many threads, or the others.
    """
    return [
        row
        for row in rows
        if has_enough(row, many) == enough
        and many * row["threads"][str(many)]["efficiency"] < few * row["threads"][str(few)]["efficiency"]
    ]


def errors(rows):
    """Relative errors of the predictions on several threads, for rows that were also measured on them."""
    return [
        row["alone"] / (int(threads) * one["efficiency"] * one["measured"]) - 1
        for row in rows
        for threads, one in row["threads"].items()
        if int(threads) > 1 and "measured" in one
    ]


def conclusion(data):
    """Lines about all rows."""
    rows, threads = data["rows"], data["threads"]
    yield f"{'efficiency, rows with 4 million products for each thread':<53}{''.join(f'{n:6d}' for n in threads)}"
    for title, fields in (("suite", ["suite"]), ("kernel", ["kernel", "layout"])):
        for values, own in grouped(rows, *fields).items():
            yield f"{title + ' ' + ' '.join(values):<53}{means(own, threads)}"
    yield f"{'all':<53}{means(rows, threads)}"
    most = threads[-1]
    causes = grouped([{"binds": row["threads"][str(most)]["binds"], **row} for row in rows], "binds")
    binding = sorted(((len(own), cause) for (cause,), own in causes.items()), reverse=True)
    yield f"bottlenecks on {most} threads: " + ", ".join(f"{cause} {count}" for count, cause in binding)
    for many, few, enough in ((64, 16, True), (64, 8, False)):
        if {many, few} <= set(threads):
            found = slower(rows, many, few, enough)
            which = "enough" if enough else "less"
            yield f"slower on {many} threads than on {few}, with {which} work: {len(found)} rows"
    if found := errors(rows):
        yield (
            f"prediction to measurement: median error {median(map(abs, found)):.3f}, median {median(found):+.3f}, "
            f"{len(found)} rows"
        )


def main(argv=None):
    parser, options = arguments(argv)
    rows = suites.rows(options.suite, options.op, options.layout, match=options.match)
    if not rows:
        parser.error("no layer is left")
    cores = cores_of(options)
    data = {
        "machine": machine.about(),
        "isa": cpu.isa,
        "cores": cores._asdict(),
        "threads": options.threads,
        "rows": [],
    }
    print(f"{cores.title}: a team of two {cores.team * 1e6:.1f} us, each further thread {cores.member * 1e6:.2f} us;")
    print(f"{cores.core_rate * 1e-9:.0f} GB/s for a core, {cores.memory_rate * 1e-9:.0f} GB/s for all")
    if options.measure:
        data["teams"] = {str(n): loop_of_nothing(n) for n in options.threads if n <= data["machine"]["processors"]}
        print("a loop of nothing: " + ", ".join(f"{n}: {t * 1e6:.1f} us" for n, t in data["teams"].items()))
    head = "".join(f"{n:6d}" for n in options.threads)
    print(f"{'efficiency by threads':<44}{'us':>9}{head}  tasks of the largest loop; bottleneck with most threads\n")
    for row in rows:
        data["rows"].append(row_result(row, options, cores))
        print(line_of(data["rows"][-1]), flush=True)
        if options.json:
            results.write(data, options.json)  # after each row: a machine may be lent for minutes
    print("\n" + "\n".join(conclusion(data)))
    if options.plot:
        from . import plots

        plots.cores(data, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
