"""``python -m bench.tune``: the rows whose plans a tuned number moves, and whether another value is faster.

All rows are planned with the value of each number and with 0.7 and 1.4 times the value. A row is timed only if its plan
changes: the old plan and the new plan run in turn. ``--list`` plans and times nothing. ``--write`` keeps the faster
values for processors like this one.
"""

import argparse
import signal
import sys
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import NamedTuple

import convgrad_cy as cg
from convgrad_cy import cpu
from convgrad_cy.cpu.machine.processor import processor
from convgrad_cy.cpu.machine.tuning import by_processor

from . import both_ways, extremes, machine, moved_rows, moves, results, routes, suites
from .__main__ import terminated
from .summary import geometric_mean
from .table import Progress

#: A value is taken if two measurements say that its rows are this many times faster.
GAIN = 1 / 0.98


class Move(NamedTuple):
    """Another value of a number, and the signature of the new plan of each moved row, by the place of the row."""

    number: str
    factor: float
    value: float
    plans: dict


class Way(NamedTuple):
    """A task in the form that ``both_ways.compared`` takes."""

    task: object

    def ready(self):
        return cpu.ready(self.task)


def planned_moves(plans, names):
    """The ``Move`` of each number and factor."""
    progress, found, tuning = Progress(len(names)), [], cpu.this_machine().tuning
    for done, name in enumerate(names):
        progress.show(done, name)
        for factor in moves.FACTORS:
            others = {place: plan.moved(name, factor) for place, plan in enumerate(plans)}
            others = {place: other for place, other in others.items() if other is not None}
            found.append(Move(name, factor, moves.varied(getattr(tuning, name), factor), others))
    progress.clear()
    return found


def chosen(places, most):
    """At most ``most`` of the places, at even distances."""
    places = list(places)
    return places if len(places) <= most else [places[i * len(places) // most] for i in range(most)]


def timed(wanted, rows, plans, options):
    """The results of ``both_ways.compared`` by (place, signature); numbers that make the same plan share its time.

    ``wanted``: moves, each with the places of the rows to time. Rows of one layer and type share their tensors.
    """
    tasks = {}
    for move, places in wanted:
        for place in places:
            task = moves.with_number(plans[place].task, move.number, move.factor)
            tasks.setdefault((place, move.plans[place]), task)
    found, progress = {}, Progress(len(tasks))
    ordered = sorted(tasks, key=lambda key: (rows[key[0]].layer.line, rows[key[0]].case.dtype, key[0]))
    for _, keys in groupby(ordered, lambda key: (rows[key[0]].layer.line, rows[key[0]].case.dtype)):
        tensors = None
        for key in keys:
            row = rows[key[0]]
            progress.show(len(found), f"{row.case.name} {row.kernel} {row.case.layout}")
            tensors = tensors or both_ways.Tensors(row.layer.case("NCX", row.case.dtype))
            ways = Way(plans[key[0]].task), Way(tasks[key])
            found[key] = both_ways.compared(row, tensors, *ways, options.seconds)
    progress.clear()
    return found


def gain(move, places, found):
    """How many times faster the rows are with the other value, as a geometric mean; None if a result is wrong."""
    pairs = [found[place, move.plans[place]] for place in places]
    if not pairs or any("seconds" not in pair for pair in pairs):
        return None
    return geometric_mean(pair["seconds"] / pair["other_seconds"] for pair in pairs)


def measured(every, rows, plans, options):
    """(gain by number and factor, value to take by number, texts of wrong and failed rows).

    A value that seems faster is timed a second time. It is taken if the second measurement agrees.
    """
    wanted = [(move, chosen(move.plans, options.rows)) for move in every if move.plans]
    found = timed(wanted, rows, plans, options)
    gains = {(move.number, move.factor): gain(move, places, found) for move, places in wanted}
    seeming = [(move, places) for move, places in wanted if (gains[move.number, move.factor] or 0) > GAIN]
    again = timed(seeming, rows, plans, options)
    best = {}
    for move, places in seeming:
        key = move.number, move.factor
        gains[key] = min(gains[key], gain(move, places, again) or 0.0)
        if gains[key] > max(GAIN, best.get(move.number, (0.0,))[0]):
            best[move.number] = gains[key], move.value
    troubles = [
        f"{rows[place].case.name} {rows[place].kernel} {rows[place].case.layout}: {pair.get('wrong') or pair['failed']}"
        for (place, _), pair in {**found, **again}.items()
        if "seconds" not in pair
    ]
    return gains, {name: value for name, (_, value) in best.items()}, troubles


NUMBER, CELL = 34, 12


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def header(options):
    sides = "".join(f"{f'x {factor}':>{CELL}}{'rows':>6}{'faster':>8}" for factor in moves.FACTORS)
    end = "moved suites" if options.list else "verdict"
    return f"{'number':<{NUMBER}}{'value':>{CELL}}{sides}  {end}"


def line(number, value, sides, gains, end):
    """A row of the table; ``sides``: the ``Move`` of each factor. The column "faster" has the gains."""
    cells = ""
    for move in sides:
        faster = gains.get((number, move.factor))
        cells += f"{shown(move.value):>{CELL}}{len(move.plans):6}{'' if faster is None else f'{faster:.3f}':>8}"
    return f"{number:<{NUMBER}}{shown(value):>{CELL}}{cells}  {end}"


def suites_of(sides, rows):
    """The suites of the rows that any of the moves moves."""
    return list(dict.fromkeys(rows[place].layer.suite for move in sides for place in sorted(move.plans)))


def verdict(number, sides, taken):
    if not any(move.plans for move in sides):
        return "moves no row"
    return f"take {shown(taken[number])}" if number in taken else "keep"


def written(values, path=by_processor.__file__):
    """Write ``values``, the table of all processors."""
    path = Path(path)
    head, _, _ = path.read_text(encoding="utf-8").partition("VALUES = ")
    entries = [
        f"    {key!r}: {{\n"
        + "".join(f"        {name!r}: {value!r},\n" for name, value in sorted(own.items()))
        + "    },\n"
        for key, own in sorted(values.items())
    ]
    table = "{\n" + "".join(entries) + "}" if entries else "{}"
    path.write_text(f"{head}VALUES = {table}\n".replace("'", '"'), encoding="utf-8")


def with_taken(values, key, taken):
    """The table of all processors after ``taken`` is added to the entry of one processor."""
    return {**values, key: {**values.get(key, {}), **taken}} if taken else values


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.tune", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=moves.NAMES, default=list(moves.NAMES), metavar="NAME", help="these numbers (all)")
    add("--list", action="store_true", help="plan and print the rows that each number moves, and time nothing")
    add(
        "--record", type=Path, metavar="FILE", help="write one moved row for each number to this file, and time nothing"
    )
    add("--write", action="store_true", help="keep the faster values for processors like this one, in by_processor.py")
    extremes.add_rows(parser, ["suites"], 1000)
    add("--threads", type=int, default=1, help="threads of a call (%(default)s)")
    add("--rows", type=int, default=24, help="most moved rows that are timed for each value (%(default)s)")
    add("--seconds", type=float, default=0.05, help="spent on each plan of a row (%(default)s)")
    add("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(argv)
    if options.threads < 1 or options.rows < 1:
        parser.error("--threads and --rows must be at least 1")
    if options.write and (options.list or options.record or processor() is None):
        parser.error("--write needs an x86 processor that /proc/cpuinfo describes, and neither --list nor --record")
    return options


def record(options):
    """Write a moved row for each number. Return whether a number has none. Rows of the file that still move stay."""
    names, path = list(options.only), options.record
    known = moved_rows.read(path) if path.exists() else {}
    found = {name: known[name] for name in names if name in known and known[name].is_moved()}
    for layers in (suites.LAYERS, moved_rows.odd_layers_of(options.count, options.seed)):
        for dtype, machine_name in product(moved_rows.DTYPES, moved_rows.MACHINES):
            left = [name for name in names if name not in found]
            found |= moved_rows.search(left, layers, dtype, machine_name)
    path.write_text("".join(f"{found[name]}\n" for name in names if name in found), encoding="utf-8")
    missing = [name for name in names if name not in found]
    print(f"{len(found)} of {len(names)} numbers move a row{': none by ' if missing else ''}{', '.join(missing)}")
    return bool(missing)


def main(argv=None):
    options = arguments(argv)
    if options.record:
        return record(options)
    cg.set_num_threads(options.threads)
    rows = extremes.rows_of(options)
    plans = [moves.Planned.of(routes.task_of(row)) for row in rows]
    every = planned_moves(plans, options.only)
    gains, taken, troubles = ({}, {}, []) if options.list else measured(every, rows, plans, options)
    print(f"{len(rows)} rows\n\n{header(options)}")
    by_number = cache(lambda name: [move for move in every if move.number == name])
    tuning, found = cpu.this_machine().tuning, []
    for name in options.only:
        sides = by_number(name)
        moved = suites_of(sides, rows)
        end = (" ".join(moved) or "-") if options.list else verdict(name, sides, taken)
        print(line(name, getattr(tuning, name), sides, gains, end))
        values = [[move.value, len(move.plans), gains.get((name, move.factor))] for move in sides]
        found.append({"number": name, "value": getattr(tuning, name), "others": values, "suites": moved})
    print(f"\n{sum(not number['suites'] for number in found)} of {len(found)} numbers move no row")
    for trouble in troubles:
        print(f"wrong or failed: {trouble}")
    if options.json:
        about = {name: getattr(options, name) for name in ("sets", "count", "seed", "threads", "seconds")}
        results.write({"machine": machine.about(), **about, "taken": taken, "rows": found}, options.json)
    if options.write:
        key = *processor(), cpu.this_machine().vector_bytes
        written(with_taken(by_processor.VALUES, key, taken))
        print(f"{len(taken)} values kept for {key}: {by_processor.__file__}")
    return bool(troubles)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
