"""A plot of ratios: one panel for each type and mode, one bar for each model and layout."""

from matplotlib.patches import Patch

from bench.models import MODELS
from bench.plots import _about, _figure

from . import FRAMEWORKS, summary

COLOURS = {"NCX": "#4477aa", "NXC": "#ee6677"}
LABELS = {"NCX": "channels first", "NXC": "channels last"}


def ratios(data, path):
    """Times faster with our kernels. The whiskers span the middle half of the pairs; the dashes are the means."""
    rows = [row for row in data["rows"] if summary.is_timed(row)]
    groups = summary.grouped(rows, "dtype", "mode")
    names = list(dict.fromkeys(row["model"] for row in rows))
    layouts = [layout for layout in COLOURS if any(row["layout"] == layout for row in rows)]
    columns = min(2, max(1, len(groups)))
    lines = max(1, -(-len(groups) // columns))
    figure = _figure(4 + 3.5 * columns, 1.2 + 0.42 * len(names) * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharey=True).flat
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
        panel.xaxis.set_major_formatter("{x:g}")
        panel.margins(x=0.12)
        panel.set_title(f"{dtype}, {mode}", fontsize=9)
    if figure.axes:
        figure.axes[0].invert_yaxis()
    title = FRAMEWORKS[summary.framework_of(data)].title
    figure.suptitle(f"a training step: {title}'s time to ours - {_about(data)}", fontsize=10)
    handles = [Patch(color=COLOURS[layout], label=LABELS[layout]) for layout in layouts or COLOURS]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9)
    figure.savefig(path, dpi=120)
