"""The sum of partial sums, in a fixed order: what ends every sum that was split among blocks.

Partial sums lie in a workspace as ``[split][element]`` in the compute type. An element is six digits, the last one
fastest, each with an extent there and a stride in the operand (the formula is in ``reduce.cu``). For the filter of
``wgrad`` with ``R`` rows and ``O`` columns in each of ``G`` groups that is::

    partials[split][group][row][out]        extents (G, four that make a row, O)
"""

from math import prod

from .plan import Launch, integers

#: Elements of one split are counted in 32 bits.
MOST_ELEMENTS = 2**31 - 1
_THREADS = 256
_SIDE = 32
#: Blocks of 256 threads that are enough for any GPU; beyond, each thread has more than one element.
_MOST_BLOCKS = 1 << 16


def workspace_bytes(dtype, splits, extents):
    """Bytes of the partial sums."""
    return splits * prod(extents) * dtype.compute_itemsize


def launch(dtype, workspace, operand, splits, extents, strides, begin=0):
    """Add the ``splits`` partial sums of ``workspace`` into ``operand`` (numbers as in ``Launch.pointers``).

    ``extents`` and ``strides`` (in elements of the operand) have six entries; ``begin`` is where element 0 goes.
    """
    rows, columns = prod(extents[:5]), extents[5]
    across = _runs_across(extents, strides)
    blocks = -(-rows // _SIDE) * -(-columns // _SIDE) if across else -(-rows * columns // _THREADS)
    macros = (("ACROSS", str(int(across))), ("STORAGE", dtype.cuda))
    arguments = integers(splits, begin, extents, strides)
    grid, block = (min(blocks, _MOST_BLOCKS), 1, 1), (_THREADS, 1, 1)
    return Launch("reduce.cu", macros, "reduce", grid, block, 0, (workspace, operand), arguments)


def _runs_across(extents, strides):
    """Whether the operand's memory runs along the rows, and both sides of a square are worth turning it."""
    along = min((abs(s) for s, n in zip(strides[:5], extents[:5], strict=True) if n > 1), default=abs(strides[5]))
    return along < abs(strides[5]) and extents[5] >= _SIDE // 4 and prod(extents[:5]) >= _SIDE // 4


def variants():
    """All macro sets that ``launch`` can choose, as (source, kernel, macros)."""
    for across in "01":
        for storage in ("f16", "bf16", "float", "double", "int"):
            yield "reduce.cu", "reduce", (("ACROSS", across), ("STORAGE", storage))
