"""``python -m bench``: times this package and its peers on the layers of suites.txt."""

import argparse
import os
import re
import signal
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from . import entrance, machine, processes, results, suites, table
from .case import DTYPES, FUNCTIONS, KERNELS, LAYOUTS
from .measure import ROUNDS, Bench, best_of
from .peers import ALGORITHM, OURS
from .peers import NAMES as PEERS
from .summary import troubles
from .verify import Wrong

#: Assumptions for the announced time: FLOP per second of a library, and seconds that a row needs in addition to its
#: calls.
EXPECTED_RATE, OVERHEAD = 5e10, 0.15


def listed(allowed):
    """A parser of names with commas between them."""

    def parse(text):
        names = [name for name in text.split(",") if name]
        if unknown := [name for name in names if name not in allowed]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(allowed)}")
        return names

    return parse


def regex(text):
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


def seconds(text):
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, not {text!r}")
    return number


def new_file(text):
    """A path to which a result can be written. It is checked before the work, so that no work is lost."""
    path = Path(text)
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir() or not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise argparse.ArgumentTypeError(f"must be a file in a folder that can be written, not {text!r}")
    return path


def interpreter(text):
    name, _, path = text.partition("=")
    if name not in PEERS or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH with a NAME of {', '.join(PEERS)}")
    return name, path


def arguments(argv):
    operations = [*KERNELS, *dict.fromkeys(FUNCTIONS.values())]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--suite", type=listed(suites.NAMES), default=suites.NAMES, help=f"of {', '.join(suites.NAMES)} (all)")
    add("--op", type=listed(operations), default=KERNELS, help="kernels fprop,dgrad,wgrad, or functions by name (all)")
    add("--dtype", type=listed(DTYPES), default=["float32"], help=f"of {', '.join(DTYPES)} (float32)")
    add("--layout", type=listed(LAYOUTS), default=LAYOUTS, help="of NCX, NXC (both)")
    add("--algorithm", choices=("auto", "direct"), default="auto", help="of this package (%(default)s)")
    add("--threads", type=int, help="of every library (the processors of this process)")
    add("--peers", type=listed(PEERS), help=f"of {', '.join(PEERS)}, or an empty text for none (those installed)")
    add(
        "--python",
        type=interpreter,
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="the Python that has a peer",
    )
    add("--seconds", type=seconds, default=0.2, help="spent on each row and library (%(default)s)")
    add("--passes", type=int, default=1, help="how often all rows are measured; the best counts (%(default)s)")
    add("--match", type=regex, default="", metavar="REGEX", help="layers whose name has this")
    add("--json", type=new_file, help="write the results to this file")
    add("--plot", type=new_file, help="write the plot of ratios to this file")
    add("--list", action="store_true", help="print the layers and stop")
    options = parser.parse_args(argv)
    if options.threads is None:
        options.threads = machine.about()["processors"]
    if not 1 <= options.threads <= (os.cpu_count() or 1):
        parser.error(f"--threads must be 1 to {os.cpu_count()}")
    if options.passes < 1:
        parser.error("--passes must be 1 or more")
    if options.plot and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib")
    options.python = dict(options.python)
    return parser, options


def chosen_peers(parser, options):
    """name -> interpreter. If the user names no libraries, all installed ones are taken."""
    pythons = {name: processes.python_of(name, options.python) for name in PEERS}
    wanted = PEERS if options.peers is None else options.peers
    present = {
        name: python for name, python in pythons.items() if name in wanted and processes.has_library(python, name)
    }
    if options.peers and (missing := [name for name in options.peers if name not in present]):
        name = missing[0]
        parser.error(f"{pythons[name]} has no {name}; --python {name}=PATH names the interpreter that has it")
    return present


def expected_seconds(rows, libraries, seconds):
    """A rough guess of the whole run's time."""
    return sum(
        (max(seconds, ROUNDS * row.case.flop / EXPECTED_RATE) + row.case.flop / EXPECTED_RATE + OVERHEAD) * libraries
        for row in rows
    )


def scratch_folder():
    """A folder for the tensors of a row: in memory if the machine offers that."""
    return tempfile.TemporaryDirectory(prefix="convgrad_bench_", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def run(rows, peers, options):
    """Measure all rows and print each one. Ctrl-C ends the run, and the result has the rows until then."""
    data = {"machine": machine.about()}
    data |= {name: getattr(options, name) for name in ("algorithm", "threads", "seconds", "passes")}
    data["layers"] = suites.lines(dict.fromkeys(row.layer for row in rows))
    os.environ[ALGORITHM] = options.algorithm  # the worker inherits it
    if data["machine"]["load_at_start"] > 0.5:
        print(f"the machine is busy (load {data['machine']['load_at_start']:.1f}): these times are not to be trusted")
    with scratch_folder() as folder:
        pythons = {OURS: sys.executable, **peers}
        workers = {name: processes.Process(name, python, options.threads, folder) for name, python in pythons.items()}
        bench = Bench(workers, Path(folder))
        data |= {"libraries": {}, "copy": None, "rows": []}
        turns = [(i, row) for _ in range(options.passes) for i, row in enumerate(rows)]
        progress = table.Progress(len(turns))
        try:
            data["libraries"] = bench.about()
            for name, about in data["libraries"].items():
                print(f"{name:<12}{about.get('version') or about}")
            data["copy"] = bench.copy_rate()
            guess = options.passes * expected_seconds(rows, len(workers), options.seconds)
            print(f"{options.threads} threads, {len(rows)} rows; this will take about {table.duration(guess)}")
            print("GFLOP/s; -: not offered; ~: too slow to wait for; !: wrong result; x: failed\n")
            print(table.header(list(peers)))
            for done, (i, row) in enumerate(turns):
                progress.show(done, f"{row.case.name} {row.kernel} {row.case.layout}")
                measured = bench.measure(row, options.seconds)
                if done < len(rows):
                    data["rows"].append(measured)
                else:
                    data["rows"][i] = best_of(data["rows"][i], measured)
                progress.clear()
                print(table.line(data["rows"][i], data["rows"], list(peers)), flush=True)
        except (KeyboardInterrupt, Wrong) as stop:
            progress.clear()
            data["stopped"] = str(stop) or "interrupted"
            print(data["stopped"])
        finally:
            for worker in workers.values():
                worker.end()
    return data


def terminated(number, frame):
    """SIGTERM ends the run once, as Ctrl-C does. A second signal must not disturb the cleaning up."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(argv=None):
    parser, options = arguments(argv)
    rows = suites.rows(options.suite, options.op, options.layout, options.dtype, options.match)
    if not rows:
        parser.error("no layer is left")
    if options.list:
        for layer in dict.fromkeys(row.layer for row in rows):
            kind = "transposed" if layer.transposed else ""
            case = layer.case("NCX", "float32")
            print(f"{layer.suite:<12}{layer.name:<34}x{layer.count:<3}{case.flop * 1e-9:8.3f} GFLOP  {kind}")
        return 0
    data = run(rows, chosen_peers(parser, options), options)
    print("\n" + "\n".join(table.conclusion(data)))
    if options.json:
        results.write(data, options.json)
    if options.plot:
        from . import plots

        plots.ratios(data, options.plot)
    return 1 if "stopped" in data or troubles(data["rows"]) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(entrance.status_of(main))
