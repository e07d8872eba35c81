"""``python -m bench.documents [--check]``: makes the tables of README.md and docs/ anew from bench/results/.

A table follows a line ``<!-- NAME: made by python -m bench.documents -->``. With --check, nothing is written, and the
status is 1 if a table differs from the one that the results give.
"""

import argparse
import re
import sys
from functools import cache
from pathlib import Path
from statistics import median

from . import results, suites, summary
from .complaints import table as complaints_table
from .gpu import report as gpu_report
from .gpu import rows as gpu_rows
from .models import MODELS
from .peers import OURS
from .report import markdown_table
from .schedule import mean_efficiency
from .slow_layers import reason
from .training import FRAMEWORKS
from .training import report as training
from .training import summary as training_summary

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "docs/performance.md", "docs/jax.md")
_TABLE = re.compile(r"(<!-- (\S+): made by python -m bench\.documents -->\n)(?:\|.*\n)*")

#: The machines of the tables, with the instruction set that is chosen there: title -> the beginning of its results'
#: names.
MACHINES = {"Zen 5": "zen5-x86_64_v4", "Zen 4": "zen4-x86_64_v4", "Zen 3": "zen3-x86_64_v3"}
LIBRARIES = {OURS: "convgrad_cy", "torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
LAYOUTS = {"NCX": "channels first", "NXC": "channels last"}
OPERATIONS = {"fprop": "forward", "dgrad": "gradient of x", "wgrad": "gradient of w"}
SUITES = {
    "resnet50": "ResNet-50",
    "vgg16": "VGG-16",
    "unet": "U-Net",
    "dcgan": "DCGAN",
    "mobilenet": "MobileNetV2",
    "resnext": "ResNeXt-50, grouped layers",
    "unet3d": "3-D U-Net",
    "hifigan": "HiFi-GAN",
    "vit": "patch embeddings",
    "five": "5×5 layers of AlexNet and GoogLeNet",
    "dilated": "dilated layers",
    "inference": "decoders of image and speech networks, batch 1",
    "tiny": "tiny layers",
    "reports": "layers from public reports of slow convolutions",
}
#: A ratio counts as equal from AS_FAST on, and as slow below SLOW: ratios are not measured more finely.
AS_FAST, SLOW = 0.95, 0.9
#: A layer with at least this number of channels spends most of its time on products; bytes of arrays that leave a
#: core's own caches.
DENSE_CHANNELS, LARGE_BYTES = 64, 4 << 20


#: Several tables are made from one file.
read = cache(results.read)


def read_all(what):
    """title of a machine -> its result of a kind."""
    return {title: read(f"{begin}-{what}") for title, begin in MACHINES.items()}


def mean_of(rows):
    """The geometric mean of the ratios of rows, as a cell."""
    mean = summary.geometric_mean(ratio for ratio, _ in summary.ratios(rows))
    return "–" if mean is None else f"{mean:.2f}"


def parted(rows, *fields):
    """The rows with each combination of values of some fields."""
    groups = summary.grouped(rows, *fields)
    return lambda *values: groups.get(values, [])


def by_layout(titles):
    """A header with the two layouts of each machine."""
    return [f"{title}, {layout}" for title in titles for layout in LAYOUTS.values()]


def machines():
    """The measured machines, their limits, and the versions that were compared."""
    one, two, direct = (read_all(what) for what in ("1thread", "2threads", "direct"))
    cells = []
    for title, data in read_all("float32").items():
        isa = MACHINES[title].partition("-")[2]
        tile, copy = summary.tile_rate(data["rows"], "float32"), data["copy"]
        versions = {name: about["version"].partition("+")[0] for name, about in data["libraries"].items()}
        others = ", ".join(f"{LIBRARIES[name]} {versions[name]}" for name in summary.peers_of(data))
        speedup = ", ".join(
            f"{step_seconds(one[title], layout) / step_seconds(two[title], layout):.2f}" for layout in LAYOUTS
        )
        limits = f"{tile * 1e-9:.0f} GFLOP/s", share_of_tile(direct[title]), f"{copy * 1e-9:.0f} GB/s"
        cells.append([f"{data['machine']['processor']}, {title}, `{isa}`", *limits, speedup, others])
    header = ["two cores of", "register tile", "direct layers", "copy", "speedup of two threads", "compared with"]
    return markdown_table(header, cells)


def commits():
    """The commits that were measured, newest first."""
    found = {}
    for path in results.FOLDER.glob("*.json"):
        machine = read(path.stem).get("machine", {"date": "", "commit": None})
        commit = (machine["commit"] or "not recorded").partition("-")[0]
        found.setdefault(commit, []).append((machine["date"], f"`{path.stem}`"))
    newest = sorted(found.items(), key=lambda item: max(item[1]), reverse=True)
    cells = [
        [commit, "earlier" if row else "newest", ", ".join(sorted(name for _, name in measured))]
        for row, (commit, measured) in enumerate(newest)
    ]
    return markdown_table(["commit", "kernels", "results"], cells)


def step_seconds(data, layout):
    """Our time for all layers of a network."""
    return summary.step_seconds([row for row in data["rows"] if row["layout"] == layout], OURS)


def measured(runs):
    """(name, title) of the suites that some run has."""
    names = {row["suite"] for data in runs for row in data["rows"]}
    return [(name, title) for name, title in SUITES.items() if name in names]


def layers():
    """Means of each suite, on each machine."""
    runs = read_all("float32").values()
    parts = [parted(data["rows"], "suite") for data in runs]
    cells = [[title, *(mean_of(rows(suite)) for rows in parts)] for suite, title in measured(runs)]
    return markdown_table(["layers", *MACHINES], [*cells, ["**all**", *(mean_of(data["rows"]) for data in runs)]])


def layers_by_layout():
    """Means of each suite in each layout, and the number of rows that are at least as fast as the others."""
    runs = read_all("float32")
    parts = [parted(data["rows"], "suite", "layout") for data in runs.values()]
    cells = [
        [title, *(mean_of(rows(suite, layout)) for rows in parts for layout in LAYOUTS)]
        for suite, title in measured(runs.values())
    ]
    groups = [parted(data["rows"], "layout")(layout) for data in runs.values() for layout in LAYOUTS]
    cells.append(["**all**", *map(mean_of, groups)])
    cells.append([f"speedup of {AS_FAST} or more", *map(fast_rows, groups)])
    return markdown_table(["layers", *by_layout(runs)], cells)


def fast_rows(rows):
    ratios = [ratio for ratio, _ in summary.ratios(rows)]
    return f"{sum(ratio >= AS_FAST for ratio in ratios)} of {len(ratios)}"


def types():
    """Means for the other types than float32."""
    runs = {
        title: [row for path in sorted(results.FOLDER.glob(f"{begin}-types*.json")) for row in read(path)["rows"]]
        for title, begin in MACHINES.items()
    }
    parts = [parted(rows, "dtype", "layout") for rows in runs.values()]
    cells = [
        [dtype, *(mean_of(rows(dtype, layout)) for rows in parts for layout in LAYOUTS)]
        for dtype in ("float64", "float16", "bfloat16", "int32")
    ]
    return markdown_table(["type", *by_layout(runs)], cells)


def share_of_tile(data):
    """The part of the tile's rate that dense layers reach by the direct algorithm: medians over kernels and layouts."""
    wide = {layer.name for layer in suites.parse("\n".join(data["layers"])) if is_dense(layer.problem)}
    groups = summary.grouped([row for row in data["rows"] if row["layer"] in wide], "layout", "kernel").values()
    shares = [median(summary.share_of_tile(row, data["rows"]) for row in rows) for rows in groups]
    return f"{min(shares):.0%} to {max(shares):.0%}"


def is_dense(problem):
    return problem.groups == 1 and min(problem.x_channels, problem.y_channels) >= DENSE_CHANNELS


def slow_layers():
    """Rows below SLOW on one of the machines, and the reasons."""
    found = {}
    for title, data in read_all("float32").items():
        for ratio, row in summary.ratios(data["rows"]):
            found.setdefault((row["layer"], row["kernel"], row["layout"]), {})[title] = ratio
    slow = {key: ratios for key, ratios in found.items() if min(ratios.values()) < SLOW}
    cells = [
        [
            f"`{layer}`",
            f"{OPERATIONS[kernel]}, {LAYOUTS[layout]}",
            *(f"{ratio:.2f}" if (ratio := slow[layer, kernel, layout].get(title)) else "–" for title in MACHINES),
            reason(layer),
        ]
        for layer, kernel, layout in sorted(slow)
    ]
    return markdown_table(["layer", "operation", *MACHINES, "why"], cells)


def memory():
    """Extra memory as a multiple of the bytes of the arrays, for rows whose arrays are large."""
    rows = [row for row in read(f"{MACHINES['Zen 4']}-float32")["rows"] if row["bytes"] >= LARGE_BYTES]
    cells = []
    for name, title in LIBRARIES.items():
        measured = [row for row in rows if row["results"][name].get("memory") is not None]
        shares = sorted(row["results"][name]["memory"] / row["bytes"] for row in measured)
        most = max(row["results"][name]["memory"] for row in measured)
        marks = shares[len(shares) // 2], shares[len(shares) * 9 // 10], shares[-1]
        cells.append([title, len(shares), *(f"{mark:.2f}" for mark in marks), f"{most / 2**20:.0f} MiB"])
    return markdown_table(["library", "cases", "median", "90th percentile", "maximum", "largest amount"], cells)


def cores():
    """Efficiency on many cores, as bench.cores simulates it: means of the rows with enough work for all threads."""
    data = read(f"{MACHINES['Zen 4']}-cores")
    threads = data["threads"][1:]
    cells = [
        [title, *(f"{mean:.2f}" if (mean := mean_efficiency(rows, number)) else "–" for number in threads)]
        for title, rows in (
            *((OPERATIONS[kernel], rows) for (kernel,), rows in summary.grouped(data["rows"], "kernel").items()),
            ("**all**", data["rows"]),
        )
    ]
    return markdown_table(["threads", *threads], cells)


def many_threads():
    """Ratios on 16 cores, by operation and layout."""
    groups = parted(read("emerald_rapids-x86_64_v4-16threads")["rows"], "kernel", "layout")
    cells = [[title, *(mean_of(groups(kernel, layout)) for layout in LAYOUTS)] for kernel, title in OPERATIONS.items()]
    everything = [[row for kernel in OPERATIONS for row in groups(kernel, layout)] for layout in LAYOUTS]
    cells += [["**all**", *map(mean_of, everything)], [f"speedup of {AS_FAST} or more", *map(fast_rows, everything)]]
    return markdown_table(["ResNet-50", *LAYOUTS.values()], cells)


def errors():
    """Errors in millionths, the greatest of all kinds of data: Winograd's algorithm, and the direct one in brackets."""
    data = read(f"{MACHINES['Zen 4']}-errors")
    cells = []
    for (tile,), rows in summary.grouped(data["rows"], "tile").items():
        winograd, direct = (map(max, zip(*(row[how] for row in rows), strict=True)) for how in ("winograd", "direct"))
        pairs = zip(winograd, direct, strict=True)
        cells.append([tile, *(f"{one * 1e6:.1f} ({other * 1e6:.1f})" for one, other in pairs)])
    return markdown_table(["tile", *(f"{channels} channels" for channels in data["channels"])], cells)


def gpu():
    """Speed relative to cuDNN: means of groups of layers."""
    data = read("h200-sm_90-gpu")
    groups = summary.grouped(data["rows"], "group")
    cells = []
    for group in gpu_rows.GROUPS:
        ratios = sorted(filter(None, map(gpu_report.ratio, groups.get((group.name,), []))))
        if ratios:
            mean, fast = summary.geometric_mean(ratios), sum(value >= 1 for value in ratios)
            name = group.name if group.dtype in group.name else f"{group.dtype} {group.name}"
            cells.append([name, f"{mean:.2f}", f"{ratios[0]:.2f}–{ratios[-1]:.2f}", f"{fast} of {len(ratios)}"])
    return markdown_table(["types and layers", "geometric mean", "slowest–fastest layer", "as fast or faster"], cells)


def steps():
    """Training steps of PyTorch in both types."""
    data, dtypes = read(f"{MACHINES['Zen 4']}-training"), FRAMEWORKS["torch"].dtypes
    (names, lines), (_, more) = (training.cells(data, dtype) for dtype in dtypes)
    header = [f"{dtype}, {name}" for dtype in dtypes for name in names]
    return markdown_table(["network", *header], [[*line, *rest[1:]] for line, rest in zip(lines, more, strict=True)])


def steps_jax():
    """Training steps of JAX: median times, and the median ratio of pairs."""
    data, cells = read(f"{MACHINES['Zen 4']}-training-jax"), []
    for row in data["rows"]:
        model = MODELS[row["model"]]
        step = f"{model.title}, {model.batch} images of {'×'.join(map(str, model.inputs[1:]))}"
        times = (complaints_table.duration(median(row["seconds"][side])) for side in ("jax", OURS))
        cells.append([step, *times, f"{training_summary.ratio(row):.2f}"])
    mean = summary.geometric_mean(map(training_summary.ratio, data["rows"]))
    cells.append(["geometric mean", "", "", f"{mean:.2f}"])
    return markdown_table(["network and batch", "XLA", "convgrad_cy", complaints_table.SPEEDUP], cells)


def complaints():
    """Convolutions of public complaints about XLA."""
    return complaints_table.markdown(read(f"{MACHINES['Zen 4']}-complaints"))


TABLES = {
    "machines": machines,
    "commits": commits,
    "layers": layers,
    "layers-by-layout": layers_by_layout,
    "types": types,
    "slow-layers": slow_layers,
    "memory": memory,
    "many-threads": many_threads,
    "cores": cores,
    "errors": errors,
    "steps": steps,
    "steps-jax": steps_jax,
    "complaints": complaints,
    "gpu": gpu,
}


def made_anew(text):
    """The text of a document with its tables as the results give them."""
    return _TABLE.sub(lambda match: match[1] + TABLES[match[2]](), text)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.documents", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where a table differs")
    options = parser.parse_args(argv)
    status = 0
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        new = made_anew(text)
        if new == text:
            continue
        status = 1 if options.check else 0
        print(f"{name}: {'a table differs from bench/results/' if options.check else 'written'}")
        if not options.check:
            (ROOT / name).write_text(new, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
