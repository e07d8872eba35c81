"""Calls that are recorded with a framework and replayed without it.

A call is an expression, such as ``T(2, 3, stride=2)(t("float32", (1, 2, 2, 2), 7), ...)``. The recorder evaluates it
with the framework's names, the test with the shim's names. ``t`` makes equal tensors for both. The result is an
`Outcome`. A recording is a JSON file with one call on each line, and an .npz file with all values.
"""

import json
import os
from collections import Counter
from math import prod
from typing import NamedTuple

import numpy as np


class Outcome(NamedTuple):
    """An array, the ``repr`` of any other result, or an exception with the names of its classes."""

    array: np.ndarray | None = None
    text: str | None = None
    classes: tuple[str, ...] = ()

    @property
    def error(self):
        return self.classes[0] if self.classes else None


def dtype_of(name):
    """The NumPy dtype. bfloat16 exists only if ml_dtypes is installed."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def tensor(dtype, shape, seed, special=None):
    """Integers from -4 to 4 by a rule that is equal in all versions of NumPy. ``special`` is put into one place."""
    count = prod(shape)
    numbers = (np.arange(count, dtype=np.int64) + 65537 * seed) * 2654435761 % 2**32 // 2**7 % 9 - 4
    values = numbers.reshape(shape).astype(dtype_of(dtype))
    if special is not None:
        values.flat[seed % count] = special
    return values


def evaluate(expression, names, as_array=np.asarray, shorten=str):
    """The outcome of a call. ``as_array`` turns the framework's tensors into arrays, ``shorten`` its messages."""
    try:
        result = eval(expression, {**names, "np": np})
    except Exception as error:
        return Outcome(None, shorten(str(error)), tuple(kind.__name__ for kind in type(error).__mro__[:-2]))
    if isinstance(result, (str, tuple, list, dict, int)):
        return Outcome(text=repr(result))
    return Outcome(as_array(result))


def save(path, origin, outcomes):
    """Write expression -> outcome to ``path`` (.json), and values to a .npz file. The values are exact as float64."""
    rows, arrays = [], [np.empty(0)]
    for expression, (array, text, classes) in outcomes.items():
        if array is None:
            rows.append([expression, list(classes[:1]), text])
        else:
            rows.append([expression, array.dtype.name, list(array.shape)])
            arrays.append(array.astype(np.float64).ravel())
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f'{{"origin": {json.dumps(origin)}, "calls": [\n{lines}\n]}}\n', "utf-8")
    np.savez_compressed(path.with_suffix(".npz"), values=np.concatenate(arrays))


def load(path):
    """The origin of a recording, and the outcomes that `save` wrote."""
    recording = json.loads(path.read_text("utf-8"))
    with np.load(path.with_suffix(".npz")) as file:
        values = file["values"]
    outcomes = {}
    for expression, kind, content in recording["calls"]:
        if isinstance(kind, list):
            outcomes[expression] = Outcome(None, content, tuple(kind))
            continue
        array, values = np.split(values, [prod(content)])
        outcomes[expression] = Outcome(array.reshape(content).astype(dtype_of(kind)))
    return recording["origin"], outcomes


def difference(expected, actual):
    """The fault in an outcome, or None. The class of an exception may be derived from the expected one."""
    if expected.error is not None:
        right = expected.error in actual.classes
        return None if right else f"{expected.error}: {expected.text}\n  here: {shown(actual)}"
    if expected.array is None or actual.array is None:
        same = expected.error is actual.error and expected.text == actual.text
        return None if same and expected.array is actual.array else f"{shown(expected)}\n  here: {shown(actual)}"
    if expected.array.dtype != actual.array.dtype or expected.array.shape != actual.array.shape:
        return f"{shown(expected)}\n  here: {shown(actual)}"
    wide = [outcome.array.astype(np.float64) for outcome in (expected, actual)]
    if np.array_equal(*wide, equal_nan=True):
        return None
    return f"values, {np.count_nonzero(wide[0] != wide[1])} of {wide[0].size}"


def shown(outcome):
    if outcome.array is not None:
        return f"{outcome.array.dtype} {outcome.array.shape}"
    return f"{outcome.error}: {outcome.text}" if outcome.error else outcome.text


def tally(outcomes, compare):
    """The numbers of calls that agree, differ by a rule, and are wrong, and the faults of the wrong ones.

    ``outcomes`` are (expression, expected, actual). For each, ``compare`` returns the rule and the fault, or None.
    """
    counts, wrong = Counter(), {}
    for expression, expected, actual in outcomes:
        rule, problem = compare(expression, expected, actual)
        kind = "value" if expected.error is None else "error"
        counts[rule or f"{'wrong' if problem else 'same'} {kind}"] += 1
        if problem:
            wrong[expression] = problem
    return counts, wrong


def listed(wrong):
    """The first faults that `tally` found, as text."""
    lines = [f"{expression}\n  {problem}" for expression, problem in wrong.items()]
    return "\n".join([f"{len(lines)}:", *lines[:20]])


def print_counts(title, counts):
    for kind in ("value", "error"):
        same, wrong = counts[f"same {kind}"], counts[f"wrong {kind}"]
        print(f"{title}: {same} of {same + wrong} calls with a recorded {kind} are the same")
    for rule, count in sorted(counts.items()):
        if not rule.startswith(("same ", "wrong ")):
            print(f"{title}: {count} calls differ by: {rule}")


def print_share_of_messages(title, pairs):
    """Print the share of pairs (expected, actual) with equal messages."""
    same = sum(expected.text == actual.text for expected, actual in pairs)
    share = same / max(len(pairs), 1)
    print(f"\n{title}: {same} of {len(pairs)} messages are identical ({share:.1%})")
    return share


def live_settings():
    """The number of calls (200) and the seed (1) of a live test, from the environment."""
    calls, seed = (os.environ.get(f"CONVGRAD_CY_LIVE_{name}") for name in ("CALLS", "SEED"))
    return int(calls or 200), int(seed or 1)
