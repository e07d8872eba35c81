"""``python -m bench.training``: times training steps of whole networks, with a framework's kernels and with ours."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from bench import entrance, machine, models, processes, results
from bench.__main__ import listed, terminated
from bench.table import Progress

from . import FRAMEWORKS, summary, table

#: A compilation of 160 layers on two busy cores takes minutes.
PATIENCE = 1800.0


def offered(field):
    """The values of a field in all frameworks."""
    return list(dict.fromkeys(value for framework in FRAMEWORKS.values() for value in getattr(framework, field)))


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.training", description=__doc__)
    add = parser.add_argument
    add("--framework", choices=FRAMEWORKS, default="torch", help="%(default)s, or jax")
    add("--models", type=listed(list(models.MODELS)), help=f"of {', '.join(models.MODELS)} (all of the framework)")
    add("--dtypes", type=listed(offered("dtypes")), help="of float32; in PyTorch also bfloat16 by autocast (all)")
    add("--layouts", type=listed(offered("layouts")), help="of NXC, channels last; in PyTorch also NCX, first (all)")
    add("--modes", type=listed(offered("modes")), help="in PyTorch of eager, compile; in JAX jit (all)")
    add("--seconds", type=float, default=20.0, help="of timed steps in each row (%(default)s)")
    add("--steps", type=int, default=5, help="pairs of steps in each row at least (%(default)s)")
    add("--threads", type=int, help="of the framework and of ours (the processors of this process)")
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
    framework = FRAMEWORKS[options.framework]
    for field in ("models", "dtypes", "layouts", "modes"):
        of_framework = models.names(options.framework) if field == "models" else getattr(framework, field)
        chosen = getattr(options, field) or of_framework
        if others := [value for value in chosen if value not in of_framework]:
            parser.error(f"{framework.title} has {', '.join(of_framework)} for --{field}, not {others[0]}")
        setattr(options, field, chosen)
    if not configurations(options):
        parser.error("nothing is left: PyTorch has no channels_last format for one axis")
    for library in (options.framework, "matplotlib") if options.plot else (options.framework,):
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


def asked(folder, options, do, **fields):
    """The reply of a process that is started for this request."""
    module = "bench.training.worker"
    return processes.asked_once(options.framework, module, options.threads, folder, do, PATIENCE, **fields)


def measured(folder, options, row, references):
    """A row with its results. All rows of a model share its losses in float64."""
    name = row["model"]
    if name not in references:
        references[name] = asked(folder, options, "reference", model=name, small=options.small)
    reference = references[name]
    model = models.chosen(name, options.small)
    row = {**row, "batch": model.batch, "inputs": model.inputs}
    if "failed" in reference:
        return {**row, "failed": f"no loss to compare with: {reference['failed']}"}
    expected = {"exact": reference["exact"], "allowed": reference["allowed"][row["dtype"]]}
    configuration = {field: row[field] for field in ("model", "dtype", "layout", "mode")}
    times = {"seconds": options.seconds, "pairs": options.steps}
    reply = asked(folder, options, "measure", **configuration, **expected, **times, small=options.small)
    return {**row, **expected, **reply}


def run(options):
    """The results of all rows, printed and written one by one. Ctrl-C ends the run and keeps the finished rows."""
    data = {"kind": "training", "framework": options.framework}
    data |= {"machine": machine.about(), "threads": options.threads}
    data |= {"small": options.small, "libraries": {}, "rows": []}
    if data["machine"]["load_at_start"] > 0.5:
        print(f"the machine is busy (load {data['machine']['load_at_start']:.1f}): these times are not to be trusted")
    rows, references = configurations(options), {}
    progress = Progress(len(rows))
    with tempfile.TemporaryDirectory(prefix="convgrad_training_") as folder:
        try:
            data["libraries"] = asked(folder, options, "about")
            for name, about in data["libraries"].items():
                print(f"{name:<12}{about['version'] if isinstance(about, dict) else about}")
            print(f"{options.threads} threads, {len(rows)} rows\n\n{table.header(options.framework)}", flush=True)
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
