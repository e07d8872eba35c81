"""The sum of partial sums in a fixed order, the second step of split-K.

Partial sums lie in a workspace as ``[split][element]`` in the compute type. The number of an
element has six digits, and the last one is the fastest. Each digit has an extent in the workspace and a stride in the
operand (``reduce.cu`` has the formula). For the filter of ``wgrad`` with ``R`` rows and ``O`` columns in each of ``G``
groups::

    partials[split][group][row][out]        extents (G, four that make a row, O)
"""

from math import prod

from .plan import Launch, integers

#: Elements of one split are counted in 32 bits.
MOST_ELEMENTS = 2**31 - 1
#: WIDTH and LINES of reduce.cu: a block has LINES lines of WIDTH threads.
_WIDTH, _LINES = 32, 8
#: ROUND of reduce.cu: loads of a thread in flight at once.
ROUND = 8


def workspace_bytes(dtype, splits, extents):
    """Bytes of the partial sums."""
    return splits * prod(extents) * dtype.compute_itemsize


def launch(dtype, workspace, operand, splits, extents, strides, begin=0):
    """Add the ``splits`` partial sums of ``workspace`` into ``operand`` (numbers as in ``Launch.pointers``).

    ``extents`` and ``strides`` (in elements of the operand) have six entries. ``begin`` is the index of element 0.
    """
    lanes = _lanes(splits)
    # A strip of a single row needs no transposition.
    across = lanes < _LINES and _runs_across(extents, strides)
    if not across:
        extents, strides = _merged(extents, strides)
    columns = extents[5] if across else _WIDTH
    rows = -(-prod(extents) // columns)
    strips = -(-rows * lanes // _LINES)
    blocks = -(-strips * columns // _WIDTH)
    arguments = integers(splits, lanes, across, begin, extents, strides)
    grid, block = (blocks, 1, 1), (_WIDTH * _LINES, 1, 1)
    return Launch("reduce.cu", _macros(dtype.cuda), "reduce", grid, block, 0, (workspace, operand), arguments)


def _merged(extents, strides):
    """Extents and strides with the fewest digits, aligned at the end, because each digit costs a division."""
    digits = []
    for extent, stride in zip(extents, strides, strict=True):
        if digits and digits[-1][1] == extent * stride:
            digits[-1] = (digits[-1][0] * extent, stride)
        elif extent > 1:
            digits.append((extent, stride))
    digits = [(1, 0)] * (6 - len(digits)) + digits
    return tuple(zip(*digits, strict=True))


def _lanes(splits):
    """Number of threads that share the splits of an element: 8, 4, 2 or 1, so that each has a round of loads.

    Filters of few elements have many splits. One thread for each element would add them one after another, on few
    multiprocessors. This number, and so the order of the sum, depends on the number of splits only.
    """
    return next(lanes for lanes in (8, 4, 2, 1) if splits >= lanes * ROUND or lanes == 1)


def _runs_across(extents, strides):
    """Whether rows are the operand's fastest direction, and both sides are long enough for a transposition."""
    along = min((abs(s) for s, n in zip(strides[:5], extents[:5], strict=True) if n > 1), default=abs(strides[5]))
    return along < abs(strides[5]) and min(extents[5], prod(extents[:5])) >= _LINES


def _macros(storage):
    return (("STORAGE", storage),)


def variants():
    """All macro sets that ``launch`` can choose, as (source, kernel, macros)."""
    for storage in ("f16", "bf16", "float", "double", "int"):
        yield "reduce.cu", "reduce", _macros(storage)
