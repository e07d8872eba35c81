"""Results as files: ``write`` and ``read`` keep the findings of a run. bench/results/ has the newest run of each kind.

A file is JSON with one row of the result on each line. The rows of ``python -m bench`` are arrays there, and "columns"
has the names of their fields. The measurements of a library are such an array, too. "layers" has the layers' lines of
suites.txt at the time of the run. Shapes and FLOP follow from these lines, so the rows have only the layers' names.
Other results may have "fields": their rows are then arrays of these, too.
"""

import json
import os
from pathlib import Path

from . import measure, suites, summary

FOLDER = Path(__file__).with_name("results")
#: Significant digits of the numbers in a file. Times are less accurate.
DIGITS = 5
#: The fields at the beginning of a row, and the fields of a library's measurement.
ROW = ("layer", "kernel", "layout", "dtype")
MEASURED = ("seconds", "error", "memory", "calls")


def path_of(name):
    """The file that a user names: a path, or a file of bench/results/ without its ending."""
    path = Path(name)
    return path if path.suffix == ".json" else FOLDER / f"{name}.json"


def read(name):
    """The result in a file, in the form that the run had in memory."""
    data = json.loads(path_of(name).read_text(encoding="utf-8"))
    if "fields" in data:
        data["rows"] = [_without_nulls(zip(data["fields"], cells, strict=True)) for cells in data["rows"]]
    return _unpacked(data) if "columns" in data else data


def _without_nulls(pairs):
    return {name: value for name, value in pairs if value is not None}


def write(data, path):
    """Write a result. The file is complete at any time, so that an interrupted run leaves its rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    if "fields" in data:
        data = {**data, "rows": [[row.get(name) for name in data["fields"]] for row in data["rows"]]}
    unfinished.write_text(_text(_packed(data) if "layers" in data else data), encoding="utf-8")
    unfinished.replace(path)


def _text(data):
    """JSON with one field on a line. The longest fields have one item on a line."""

    def value(name, content):
        if name not in ("rows", "layers") or not content:
            return _json(content)
        return "[\n" + ",\n".join(map(_json, content)) + "\n]"

    return "{\n" + ",\n".join(f"{json.dumps(name)}: {value(name, data[name])}" for name in data) + "\n}\n"


def _json(value):
    return json.dumps(_rounded(value), allow_nan=False)


def _rounded(value):
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


def _packed(data):
    """The result with rows as arrays, without the fields that follow from ``layers``."""
    names, rows = list(data["libraries"]), data["rows"]
    dtypes = dict.fromkeys(row["dtype"] for row in rows)
    return {
        **{name: data[name] for name in data if name != "rows"},
        "tiles": {dtype: summary.tile_rate(rows, dtype) for dtype in dtypes},
        "columns": [*ROW, *names],
        "rows": [
            [*(row[field] for field in ROW), *(_measurement(row["results"].get(name, {})) for name in names)]
            for row in rows
        ],
    }


def _measurement(found):
    """A library's numbers as an array, or an object with the reason if there are none."""
    return [found.get(field) for field in MEASURED] if "seconds" in found else found


def _unpacked(data):
    layers = {layer.name: layer for layer in suites.parse("\n".join(data["layers"]))}
    names = data.pop("columns")[len(ROW) :]
    tiles = data.pop("tiles")
    return {**data, "rows": [_row(layers, names, tiles, *cells) for cells in data["rows"]]}


def _row(layers, names, tiles, layer, kernel, layout, dtype, *found):
    row = suites.Row(layers[layer], layers[layer].case(layout, dtype), kernel)
    results = {
        name: one if isinstance(one, dict) else dict(zip(MEASURED, one, strict=True))
        for name, one in zip(names, found, strict=True)
    }
    return {**measure.description(row), "tile": tiles[dtype], "results": results}
