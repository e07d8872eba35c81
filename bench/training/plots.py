"""A plot of speedups: one panel for each type and mode, one bar for each model and layout."""

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bench.models import MODELS
from bench.plots import _about, _figure

from . import FRAMEWORKS, MODE_NAMES, summary

COLOURS = {"NCX": "#4477aa", "NXC": "#ee6677"}
LABELS = {"NCX": "channels first", "NXC": "channels last"}
TICKS = (0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4)
LINES = (
    Line2D([], [], color="gray", linewidth=0.8, linestyle="--", label="geometric mean of the panel"),
    Line2D([], [], color="black", linewidth=0.8, label="middle half of the measurements"),
)


def ratios(data, path):
    """Speedups of whole steps. The whiskers span the middle half of the pairs. The dashed lines are the means."""
    rows = [row for row in data["rows"] if summary.is_timed(row)]
    groups = summary.grouped(rows, "dtype", "mode")
    names = list(dict.fromkeys(row["model"] for row in rows))
    layouts = [layout for layout in COLOURS if any(row["layout"] == layout for row in rows)]
    columns = min(2, max(1, len(groups)))
    lines = max(1, -(-len(groups) // columns))
    figure = _figure(4 + 3.5 * columns, 1.2 + 0.42 * len(names) * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).flat
    for panel in list(panels)[len(groups) :]:
        panel.set_axis_off()
    for panel, ((dtype, mode), group) in zip(figure.axes, groups.items(), strict=False):
        for row in group:
            pairs = sorted(summary.ratios(row))
            middle = pairs[len(pairs) // 4], pairs[-1 - len(pairs) // 4]
            place = names.index(row["model"]) + 0.4 * (layouts.index(row["layout"]) - (len(layouts) - 1) / 2)
            value = summary.ratio(row)
            panel.barh(place, value - 1, left=1, height=0.36, color=COLOURS[row["layout"]])
            panel.plot(middle, (place, place), color="black", linewidth=0.8)
            panel.annotate(
                f"{value:.2f}", (max(middle[1], 1), place), (3, 0), textcoords="offset points", fontsize=7, va="center"
            )
        panel.axvline(1, color="black", linewidth=0.8)
        panel.axvline(summary.geometric_mean(map(summary.ratio, group)), color="gray", linewidth=0.8, linestyle="--")
        panel.set_yticks(range(len(names)), [MODELS[name].title for name in names], fontsize=8)
        panel.set_xscale("log", base=2)
        panel.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS], fontsize=8)
        panel.set_title(f"{dtype}, {MODE_NAMES[mode]}", fontsize=9)
    if figure.axes and groups:
        figure.axes[0].invert_yaxis()
        spread = [ratio for row in rows for ratio in summary.ratios(row)]
        figure.axes[0].set_xlim(min(0.9, *spread), 1.1 * max(1, *spread))
    title = FRAMEWORKS[summary.framework_of(data)].title
    figure.suptitle(f"Speedup of a whole training step over {title}'s own kernels ({_about(data)})", fontsize=10)
    for panel in figure.axes[max(0, len(groups) - columns) : len(groups)]:
        panel.set_xlabel(f"{title}'s time / our time (logarithmic)", fontsize=8)
    handles = [Patch(color=COLOURS[layout], label=LABELS[layout]) for layout in layouts or COLOURS]
    figure.legend(handles=[*handles, *LINES], loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=100)
