"""A result of ``python -m bench.training`` as Markdown: python -m bench.training.report FILE.json [--plot FILE].

A result in bench/results/ is named without folder and ending.
"""

import argparse
import sys
from pathlib import Path

from bench import results
from bench.models import MODELS
from bench.report import markdown_table

from . import MODE_NAMES, summary

COLUMNS = tuple((mode, layout) for mode in ("eager", "compile", "jit") for layout in ("NCX", "NXC"))
LAYOUT_NAMES = {"NCX": "channels first", "NXC": "channels last"}


def origin(data):
    about = data["machine"]
    libraries = "; ".join(f"{name} {entry['version']}" for name, entry in data["libraries"].items())
    stopped = f" The run was not finished: {data['stopped']}." if "stopped" in data else ""
    return (
        f"{about['processor']}, {data['threads']} threads, {about['date'][:10]}, commit {about['commit']}, load at the "
        f"start {about['load_at_start']:.2f}. {libraries}.{stopped}\n"
    )


def cell(rows):
    if not rows:
        return "–"
    (row,) = rows
    if not summary.is_timed(row):
        return next(reason for reason in summary.REASONS if reason in row)
    limit = summary.limit(row)
    return f"{summary.ratio(row):.2f}" + (f" of {limit:.1f}" if limit else "")


def ratios(data, dtype):
    """Models as rows; modes and layouts as columns. A cell has the ratio, and the ratio if convolutions were free."""
    names, lines = cells(data, dtype)
    return markdown_table([dtype, *names], lines)


def cells(data, dtype):
    """The names of the columns, and the cells of each model."""
    rows = [row for row in data["rows"] if row["dtype"] == dtype]
    columns = [column for column in COLUMNS if any((row["mode"], row["layout"]) == column for row in rows)]
    lines = [
        [
            MODELS[model].title,
            *(cell([row for row in group if (row["mode"], row["layout"]) == column]) for column in columns),
        ]
        for (model,), group in summary.grouped(rows, "model").items()
    ]
    named = [f"{MODE_NAMES[mode]}, {LAYOUT_NAMES[layout]}" for mode, layout in columns]
    means = [
        summary.geometric_mean(
            summary.ratio(row) for row in rows if (row["mode"], row["layout"]) == column and summary.is_timed(row)
        )
        for column in columns
    ]
    lines.append(["geometric mean", *(f"{mean:.2f}" if mean else "–" for mean in means)])
    return named, lines


def times(data):
    """Median seconds of each row, and the range of its ratio."""
    from . import table

    titles, lines = table.titles(summary.framework_of(data)), []
    for row in data["rows"]:
        fields = [MODELS[row["model"]].title, row["dtype"], LAYOUT_NAMES[row["layout"]], MODE_NAMES[row["mode"]]]
        if not summary.is_timed(row):
            lines.append([*fields, summary.trouble(row), *[""] * len(titles)])
            continue
        pairs = sorted(summary.ratios(row))
        lines.append([*fields, *table.cells(row), f"{pairs[0]:.2f}–{pairs[-1]:.2f}"])
    return markdown_table(["model", "type", "layout", "mode", *titles, "ratios of pairs"], lines)


def markdown(data, whole=False):
    dtypes = [dtype for (dtype,) in summary.grouped(data["rows"], "dtype")]
    return "\n".join([origin(data), *(ratios(data, dtype) for dtype in dtypes), *([times(data)] if whole else [])])


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.training.report", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=results.path_of, help="or the name of a result in bench/results/")
    parser.add_argument("--all", action="store_true", help="also the times of all rows")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the plot of ratios to this file")
    options = parser.parse_args(argv)
    try:
        data = results.read(options.file)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    sys.stdout.write(markdown(data, options.all))
    if options.plot:
        from . import plots

        plots.ratios(data, options.plot)


if __name__ == "__main__":
    main()
