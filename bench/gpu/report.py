"""A result of ``bench.gpu.ratio`` as a table and a plot: python -m bench.gpu.report FILE.json [--out FOLDER]."""

import argparse
import sys
from pathlib import Path

from .. import results
from ..report import markdown_table
from ..summary import geometric_mean, grouped
from ..table import number
from .rows import GROUPS

COLOURS = {"dgrad": "#ee6677", "wgrad": "#228833", "fprop": "#4477aa", "both": "#ccbb44"}


def ratio(row):
    """How many times faster than cuDNN, by replays of graphs; None without both times or with a wrong result."""
    if not row.get("right") or "cudnn_us" not in row:
        return None
    return row["cudnn_us"] / row["ours_us"]


def floor_us(row, ceilings):
    """Least microseconds of a row: its products at matmul's rate, or its bytes at a copy's rate."""
    rate = ceilings["bfloat16" if row["dtype"] == "float16" else row["dtype"]] if row["dtype"] != "int32" else None
    times = [row["bytes"] / ceilings["copy"], *([row["flop"] / rate] if rate else [])]
    return max(times) * 1e6


def verdict(group, ratios):
    """Whether a group has reached its goal."""
    if group.goal is None or not ratios:
        return "-"
    reached = geometric_mean(ratios) >= group.goal and (group.worst is None or min(ratios) >= group.worst)
    return "reached" if reached else "missed"


def by_group(data):
    """Geometric means and worst rows, and their goals."""
    rows = grouped(data["rows"], "group")
    cells = []
    for group in GROUPS:
        some = rows.get((group.name,), [])
        ratios = [value for value in map(ratio, some) if value is not None]
        mean = geometric_mean(ratios) if ratios else None
        worst = min((row for row in some if ratio(row)), key=ratio, default=None)
        where = f"{ratio(worst):.2f} ({worst['layer']}, {worst['kernel']})" if worst else "-"
        goal = "-" if group.goal is None else f"{group.goal:g}" + (f" ({group.worst:g})" if group.worst else "")
        won = f"{sum(value >= 1 for value in ratios)}/{len(ratios)}"
        cells.append([group.name, number(mean, ".2f"), where, won, goal, verdict(group, ratios)])
    return markdown_table(["group", "geometric mean", "worst row", "faster", "goal (worst)", ""], cells)


def by_row(data):
    """Every row."""
    cells = []
    for row in data["rows"]:
        floor = floor_us(row, data["ceilings"])
        cells.append(
            [
                row["layer"],
                row["kernel"],
                row["group"],
                number(row.get("ours_us"), ".1f"),
                number(row.get("cudnn_us"), ".1f"),
                number(row.get("cudnn_deterministic_us"), ".1f"),
                number(ratio(row), ".2f"),
                f"{floor:.1f}",
                number(row.get("ours_us") and floor / row["ours_us"], ".0%"),
                number(row.get("ours_eager_us"), ".0f"),
                number(row.get("cudnn_eager_us"), ".0f"),
                number(row.get("error"), ".1e"),
                number(row.get("cudnn_error"), ".1e"),
                remark(row),
            ]
        )
    header = ["layer", "gradient", "group", "ours, us", "cuDNN, us", "deterministic", "ratio", "floor, us", "of floor"]
    return markdown_table([*header, "eager", "cuDNN eager", "error", "cuDNN's", ""], cells)


def remark(row):
    """The remark of a row without numbers."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    if not row["right"]:
        return "**wrong**" if row["bitwise"] else "**not the same bits twice**"
    return row.get("cudnn_refuses", "")


def origin(data):
    """The measured machine and the versions."""
    about = ", ".join(f"{name} {value}" for name, value in data["about"].items())
    rates = ", ".join(
        f"{name} {rate * 1e-12:.3g} {'TB/s' if name == 'copy' else 'TFLOP/s'}"
        for name, rate in data["ceilings"].items()
    )
    left = data["left_out"]
    missing = f"\nNo time was left for {len(left)} rows: {left[0]} and those after it.\n" if left else ""
    return f"{about}.\n\nCeilings: {rates}.\n{missing}"


def markdown(data):
    sections = (("Origin", origin(data)), ("Times of cuDNN over ours", by_group(data)), ("All rows", by_row(data)))
    return "\n".join(f"## {title}\n\n{text}" for title, text in sections)


def plot(data, path):
    """One panel for each group, one bar for each row: how many times faster than cuDNN."""
    # Only this function needs matplotlib. Figure, not pyplot: pyplot keeps a global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = [
        (name, found)
        for (name,), rows in grouped(data["rows"], "group").items()
        if (found := [(ratio(row), row["kernel"]) for row in rows if ratio(row)])
    ]
    lines = max(1, -(-len(groups) // 2))
    figure = Figure(figsize=(12, 1 + 1.8 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(lines, 2, squeeze=False).flat)
    for panel in panels[len(groups) :]:
        panel.set_axis_off()
    for panel, (name, found) in zip(panels, groups, strict=False):
        colours = [COLOURS[kernel] for _, kernel in found]
        panel.bar(range(len(found)), [value - 1 for value, _ in found], bottom=1, color=colours)
        panel.axhline(1, color="black", linewidth=0.8)
        panel.set_yscale("log", base=2)
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_xticks([])
        panel.set_title(name, fontsize=9)
    figure.suptitle(f"times faster than cuDNN {data['about']['cudnn']}, {data['about']['gpu']}", fontsize=10)
    figure.savefig(path, dpi=120)


def write(data, folder, name):
    """NAME.json, NAME.md and NAME.png."""
    results.write(data, folder / f"{name}.json")
    (folder / f"{name}.md").write_text(markdown(data))
    try:
        plot(data, folder / f"{name}.png")
    except ImportError:
        print("no plot: matplotlib is not installed", file=sys.stderr)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.report", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=results.path_of, help="or the name of a result in bench/results/")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write the table and the plot there")
    options = parser.parse_args(argv)
    data = results.read(options.file)
    if options.out is None:
        sys.stdout.write(markdown(data))
    else:
        write(data, options.out, options.file.stem)


if __name__ == "__main__":
    main()
