"""A result of ``python -m bench --json`` as Markdown and plots: python -m bench.report FILE.json [--out FOLDER].

A result in bench/results/ is named without folder and ending. Without --out, the Markdown goes to standard output. With
it, the folder gets NAME.md, NAME_ratios.png and NAME_roofline.png.
"""

import argparse
import sys
from pathlib import Path

from . import results, summary, table
from .peers import OURS


def markdown_table(header, rows):
    """Cells as Markdown. The first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in lines) + "\n"


def origin(data):
    """The machine, the versions and the limits that belong to the numbers."""
    about = data["machine"]
    libraries = "; ".join(f"{name} {entry.get('version', entry)}" for name, entry in data["libraries"].items())
    tiles = {dtype for (dtype,) in summary.grouped(data["rows"], "dtype")}
    limits = ", ".join(
        f"{dtype} {summary.tile_rate(data['rows'], dtype) * 1e-9:.0f} GFLOP/s" for dtype in sorted(tiles)
    )
    copy = f"{data['copy'] * 1e-9:.0f} GB/s" if data["copy"] else "unknown"
    family = " ".join(
        f"{name} {value}" for name, value in zip(("family", "model"), about["family"], strict=True) if value
    )
    stopped = f"\nThe run was not finished: {data['stopped']}.\n" if "stopped" in data else ""
    return (
        f"{about['processor']} ({family}), {data['threads']} threads, {about['system']}, {about['date']}, "
        f"commit {about['commit']}, load at the start {about['load_at_start']:.2f}.\n\n"
        f"{libraries}.\n\nBare register tile: {limits}. Copy in memory: {copy}.\n{stopped}"
    )


def by_suite(data):
    """Means and worst rows of each suite."""
    cells = []
    groups = summary.grouped(data["rows"], "suite", "dtype", "layout")
    for (suite, dtype, layout), rows in groups.items():
        pairs = summary.ratios(rows)
        mean = summary.geometric_mean(value for value, _ in pairs)
        worst = f"{pairs[0][0]:.2f} ({pairs[0][1]['layer']}, {table.SHORT[pairs[0][1]['function']]})" if pairs else "-"
        cells.append([suite, dtype, layout, len(pairs), table.number(mean, ".2f"), worst])
    pairs = summary.ratios(data["rows"])
    mean = summary.geometric_mean(value for value, _ in pairs)
    worst = f"{pairs[0][0]:.2f}" if pairs else "-"
    cells.append(["**all**", "", "", len(pairs), f"**{table.number(mean, '.2f')}**", worst])
    return markdown_table(["suite", "type", "layout", "rows", "geometric mean", "worst row"], cells)


def by_step(data):
    """Time of all layers of a network, with their multiplicities, forward and both gradients."""
    names = list(data["libraries"])
    cells = []
    for (suite, dtype, layout), rows in summary.grouped(data["rows"], "suite", "dtype", "layout").items():
        times = [summary.step_seconds(rows, name) for name in names]
        cells.append([suite, dtype, layout, *(table.number(time and time * 1e3, ".3g") for time in times)])
    return markdown_table(["suite", "type", "layout", *(f"{name}, ms" for name in names)], cells)


def by_row(data):
    """Every row: GFLOP/s of each library."""
    peers = summary.peers_of(data)
    cells = [
        [
            row["layer"],
            f"`{row['function']}`",
            row["layout"],
            row["dtype"],
            table.rate_cell(row, OURS),
            table.number(summary.share_of_tile(row, data["rows"]), ".0%"),
            *(table.rate_cell(row, name) for name in peers),
            table.number(summary.ratio(row), ".2f"),
            table.megabytes(row["results"].get(OURS, {}).get("memory")),
        ]
        for row in data["rows"]
    ]
    header = ["layer", "function", "layout", "type", "ours", "% of tile", *peers, "ratio", "memory"]
    return markdown_table(header, cells)


def accuracy(data):
    """The greatest error of each library, relative to the greatest element of a result, and its row."""
    cells = []
    for name in data["libraries"]:
        for (dtype,), rows in summary.grouped(data["rows"], "dtype").items():
            errors = [(row["results"].get(name, {}).get("error"), row) for row in rows]
            errors = [pair for pair in errors if pair[0] is not None]
            if errors:
                error, row = max(errors, key=lambda pair: pair[0])
                cells.append([name, dtype, f"{error:.1e}", f"{row['layer']}, {table.SHORT[row['function']]}"])
    return markdown_table(["library", "type", "greatest error", "where"], cells)


def reasons(data):
    """The reasons of empty cells, each with its number of rows."""
    counts = {}
    for row in data["rows"]:
        for name, result in row["results"].items():
            for kind in ("unsupported", "skipped", "wrong", "failed"):
                if kind in result:
                    key = (name, kind, result[kind])
                    counts[key] = counts.get(key, 0) + 1
    return "".join(f"* {name}, {kind} ({count} rows): {text}\n" for (name, kind, text), count in counts.items())


def markdown(data):
    sections = [
        ("Origin", origin(data)),
        ("Ratio to the fastest of the others", by_suite(data)),
        ("Time of all layers of a suite", by_step(data)),
        ("All rows, in useful GFLOP/s", by_row(data)),
        ("Greatest relative errors, against float64", accuracy(data)),
        ("Rows without a number", reasons(data)),
    ]
    return "\n".join(f"## {title}\n\n{text}" for title, text in sections if text)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=results.path_of, help="or the name of a result in bench/results/")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write Markdown and plots there")
    options = parser.parse_args(argv)
    data = results.read(options.file)
    if options.out is None:
        sys.stdout.write(markdown(data))
        return
    # Only this function needs matplotlib.
    from . import plots

    options.out.mkdir(parents=True, exist_ok=True)
    name = options.file.stem
    (options.out / f"{name}.md").write_text(markdown(data))
    plots.ratios(data, options.out / f"{name}_ratios.png")
    plots.roofline(data, options.out / f"{name}_roofline.png")


if __name__ == "__main__":
    main()
