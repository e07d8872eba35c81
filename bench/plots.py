"""Plots of a result: bars of ratios, and the roofline."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from . import summary
from .peers import OURS

#: The greatest error that "auto" may have, relative to the greatest element of a result.
CONTRACT = 2e-5
#: The colours of kinds of data, and of kernels.
KIND_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377")
COLOURS = {"fprop": "#4477aa", "dgrad": "#ee6677", "wgrad": "#228833"}


def _figure(width, height):
    # Figure, not pyplot: pyplot keeps a window system and a global state.
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _about(data):
    about = data["machine"]
    return f"{about['processor']}, {data['threads']} threads, {about['date'][:10]}"


def ratios(data, path):
    """One bar for each row and one panel for each suite: how many times faster than the fastest of the others."""
    groups = summary.grouped([row for row in data["rows"] if summary.ratio(row)], "suite", "dtype", "layout")
    columns = 2
    lines = max(1, -(-len(groups) // columns))
    figure = _figure(12, 1 + 1.8 * lines)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for panel in panels:
        panel.set_axis_off()
    for panel, (title, rows) in zip(panels, groups.items(), strict=False):
        values = [summary.ratio(row) for row in rows]
        panel.set_axis_on()
        panel.bar(
            range(len(rows)), [value - 1 for value in values], bottom=1, color=[COLOURS[row["kernel"]] for row in rows]
        )
        panel.axhline(1, color="black", linewidth=0.8)
        panel.axhline(summary.geometric_mean(values), color="gray", linewidth=0.8, linestyle="--")
        panel.set_yscale("log", base=2)
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_xticks([])
        panel.set_title(" ".join(title), fontsize=9)
    figure.suptitle(
        f"times faster than the fastest of {', '.join(summary.peers_of(data))} - {_about(data)}", fontsize=10
    )
    handles = [Patch(color=colour, label=kernel) for kernel, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(COLOURS), fontsize=9)
    figure.savefig(path, dpi=120)


def errors(data, path):
    """Errors over the number of channels, a panel for each tile.

    Winograd's are solid, the direct algorithm's dashed.
    """
    groups = summary.grouped(data["rows"], "tile")
    columns = 3
    lines = -(-len(groups) // columns)
    figure = _figure(12, 1 + 2.6 * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).flat
    colours = dict(zip(dict.fromkeys(row["data"] for row in data["rows"]), KIND_COLOURS, strict=False))
    for panel in panels:
        panel.set_axis_off()
    for panel, ((tile,), rows) in zip(figure.axes, groups.items(), strict=False):
        panel.set_axis_on()
        panel.set_title(tile, fontsize=9)
        panel.axhline(CONTRACT, color="black", linewidth=0.8)
        for row in rows:
            for values, style in ((row["winograd"], "-"), (row["direct"], "--")):
                panel.loglog(data["channels"], values, style, color=colours[row["data"]], linewidth=1.2)
    figure.suptitle(f"error / greatest element of the result, by channels; the line is {CONTRACT:g}", fontsize=10)
    handles = [Patch(color=colour, label=kind) for kind, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    figure.savefig(path, dpi=120)


def roofline(data, path):
    """Rate over intensity, with the two limits that were measured in the same run."""
    figure = _figure(9, 6)
    panel = figure.subplots()
    for kernel, colour in COLOURS.items():
        rows = [row for row in data["rows"] if row["kernel"] == kernel and summary.rate(row, OURS)]
        intensities = [row["flop"] / row["bytes"] for row in rows]
        panel.scatter(intensities, [summary.rate(row, OURS) * 1e-9 for row in rows], s=12, color=colour, label=kernel)
    limits = [row["flop"] / row["bytes"] for row in data["rows"]]
    for (dtype,) in summary.grouped(data["rows"], "dtype"):
        tile = summary.tile_rate(data["rows"], dtype) * 1e-9
        panel.axhline(tile, color="black", linewidth=0.8)
        panel.annotate(f"bare tile, {dtype}", (max(limits), tile), ha="right", va="bottom", fontsize=8)
    if data["copy"]:
        ends = [min(limits), max(limits)]
        roof = max(row["tile"] for row in data["rows"]) * 1e-9
        ends[1] = max(ends[0], min(ends[1], roof / (data["copy"] * 1e-9)))
        panel.plot(ends, [end * data["copy"] * 1e-9 for end in ends], color="gray", label="copy in memory")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("useful FLOP for each byte of the three tensors")
    panel.set_ylabel("useful GFLOP/s")
    panel.set_title(_about(data), fontsize=10)
    panel.legend(fontsize=9)
    figure.savefig(path, dpi=120)


def cores(data, path):
    """Efficiency over threads, a panel for each kernel. It has a line for each row, and their geometric mean."""
    figure = _figure(12, 4)
    panels = figure.subplots(1, len(COLOURS), squeeze=False, sharex=True, sharey=True).flat
    for panel, (kernel, colour) in zip(panels, COLOURS.items(), strict=True):
        rows = [
            [one["efficiency"] for one in row["threads"].values()] for row in data["rows"] if row["kernel"] == kernel
        ]
        for values in rows:
            panel.plot(data["threads"], values, color=colour, linewidth=0.4, alpha=0.4)
        if rows:
            panel.plot(data["threads"], [*map(summary.geometric_mean, zip(*rows, strict=True))], color="black")
        panel.set_xscale("log", base=2)
        panel.set_ylim(0, 1.05)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_title(kernel, fontsize=9)
        panel.set_xlabel("threads")
    figure.suptitle(f"efficiency, simulated for {data['cores']['title']} from tasks timed on one core", fontsize=10)
    figure.savefig(path, dpi=120)
