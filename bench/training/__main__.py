"""``python -m bench.training``: times training steps of whole networks, with PyTorch's kernels and with ours."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from bench import entrance, machine, models, processes, results
from bench.__main__ import listed, terminated
from bench.table import Progress

from . import DTYPES, LAYOUTS, MODES, summary, table

#: A compilation of 160 layers on two busy cores takes minutes.
PATIENCE = 1800.0


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.training", description=__doc__)
    add = parser.add_argument
    add("--models", type=listed(models.NAMES), default=models.NAMES, help=f"of {', '.join(models.NAMES)} (all)")
    add("--dtypes", type=listed(DTYPES), default=DTYPES, help="of float32, bfloat16 by autocast (both)")
    add("--layouts", type=listed(LAYOUTS), default=LAYOUTS, help="of NCX, NXC: channels first, last (both)")
    add("--modes", type=listed(MODES), default=MODES, help="of eager, compile (both)")
    add("--seconds", type=float, default=20.0, help="of timed steps in each row (%(default)s)")
    add("--steps", type=int, default=5, help="pairs of steps in each row at least (%(default)s)")
    add("--threads", type=int, help="of PyTorch and of ours (the processors of this process)")
    add("--output", type=Path, metavar="FILE", help="write the results to this JSON file, after each row")
    add("--plot", type=Path, metavar="FILE", help="write the plot of ratios to this file")
    add("--small", action="store_true", help="small networks: whether all runs, not how fast")
    options = parser.parse_args(argv)
    if options.threads is None:
        options.threads = machine.about()["processors"]
    if not 1 <= options.threads <= (os.cpu_count() or 1):
        parser.error(f"--threads must be 1 to {os.cpu_count()}")
    if options.steps < 1:
        parser.error("--steps must be 1 or more")
    if not configurations(options):
        parser.error("nothing is left: PyTorch has no channels_last format for one axis")
    for library in ("torch", "matplotlib") if options.plot else ("torch",):
        if not processes.has_library(sys.executable, library):
            parser.error(f"{sys.executable} has no {library}")
    return options


def configurations(options):
    """The fields of each row."""
    return [
        {"model": model, "dtype": dtype, "layout": layout, "mode": mode}
        for model in options.models
        for dtype in options.dtypes
        for mode in options.modes
        for layout in options.layouts
        if layout == "NCX" or models.MODELS[model].blocked
    ]


def asked(folder, threads, do, **fields):
    """The reply of a process that was started for this request; what goes wrong is a reply too."""
    process = processes.Process("training", sys.executable, threads, folder, "bench.training.worker")
    try:
        return process.ask(do, PATIENCE, **fields)
    except processes.Lost as lost:
        return {"failed": str(lost)}
    finally:
        process.end()


def measured(folder, options, row, references):
    """A row with its results. The losses in float64 are those of all rows of a model."""
    name = row["model"]
    if name not in references:
        references[name] = asked(folder, options.threads, "reference", model=name, small=options.small)
    reference = references[name]
    model = models.chosen(name, options.small)
    row = {**row, "batch": model.batch, "inputs": model.inputs}
    if "failed" in reference:
        return {**row, "failed": f"no loss to compare with: {reference['failed']}"}
    expected = {"exact": reference["exact"], "allowed": reference["allowed"][row["dtype"]]}
    configuration = {field: row[field] for field in ("model", "dtype", "layout", "mode")}
    times = {"seconds": options.seconds, "pairs": options.steps}
    reply = asked(folder, options.threads, "measure", **configuration, **expected, **times, small=options.small)
    return {**row, **expected, **reply}


def run(options):
    """The results of all rows, printed and written as they come; Ctrl-C ends the run and keeps what there is."""
    data = {"kind": "training", "machine": machine.about(), "threads": options.threads}
    data |= {"small": options.small, "libraries": {}, "rows": []}
    if data["machine"]["load_at_start"] > 0.5:
        print(f"the machine is busy (load {data['machine']['load_at_start']:.1f}): these times are not to be trusted")
    rows, references = configurations(options), {}
    progress = Progress(len(rows))
    with tempfile.TemporaryDirectory(prefix="convgrad_training_") as folder:
        try:
            data["libraries"] = asked(folder, options.threads, "about")
            for name, about in data["libraries"].items():
                print(f"{name:<12}{about['version'] if isinstance(about, dict) else about}")
            print(f"{options.threads} threads, {len(rows)} rows\n\n{table.header()}", flush=True)
            for done, row in enumerate(rows):
                progress.show(done, " ".join(row.values()))
                data["rows"].append(measured(folder, options, row, references))
                progress.clear()
                print(table.line(data["rows"][-1]), flush=True)
                if options.output:
                    results.write(data, options.output)
        except KeyboardInterrupt:
            progress.clear()
            data["stopped"] = "interrupted"
            print(data["stopped"])
            if options.output:
                results.write(data, options.output)
    return data


def main(argv=None):
    options = arguments(argv)
    data = run(options)
    print("\n" + "\n".join(table.conclusion(data)))
    if options.plot:
        from . import plots

        plots.ratios(data, options.plot)
    return 1 if "stopped" in data or any(map(summary.trouble, data["rows"])) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(entrance.status_of(main))
