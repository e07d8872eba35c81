"""Details of a planned task for ``explain``: names and values.

The bytes of scratch are an estimate for a call, without the window and the sums of each thread.
"""

from math import prod

import numpy as np

from ..problem import WGRAD, AxisWalk
from .families import PREFERENCE, chosen, job, name_of
from .long_sums import LongSums
from .plan.shared import packed_outputs, side_by_side, slice_bytes
from .plan.steps import PACKS, Blocks, Reads, WindowAxis
from .rewrites.columns import Columned
from .rewrites.copies import Reordered
from .rewrites.exchanged import Exchanged
from .rewrites.overlaps import Overlapped
from .rewrites.patches import Patched
from .winograd import decide_for
from .winograd.cuts import Cutting
from .winograd.memory import shared_bytes
from .winograd.walks import points_of, tile_walks, tiles_of_box

_NAMES = ("x", "w", "y")


def explained(task, preference=PREFERENCE):
    """([(refusing family, reason)], name of the family that takes the task, [(name, value)] about its plan)."""
    reasons, family = chosen(task, preference)
    named = [(name_of(other), str(reason)) for other, reason in reasons]
    return named, name_of(family), _details(job(task, preference), task)


def _bytes(axes, itemsize):
    return prod(axes.shape) * itemsize


def _task_of(made):
    """The task of a work that computes a part of another task."""
    if isinstance(made, Reordered):
        return _task_of(made.work)
    return _task_of(next(iter(made.products.values()))) if isinstance(made, Columned) else made.task


def _details(made, task, places=None):
    """Pairs of a name and a value about ``made``, the job of a task.

    ``places``: the index of x, w and y among the arrays of the call, if the task has exchanged them.
    """
    itemsize, places = task.dtype.itemsize, places or task.places
    if isinstance(made, Exchanged):
        filter = "the filter" if made.reversed is None else "the filter reversed"
        of_y = made.task.places[1] == places[2]
        how = f"{made.task.operation} of {filter}, with {'y' if of_y else 'x'} as its filter"
        return [("computed as", how), *_details(made.work, made.task, places)]
    if isinstance(made, Patched):
        copied = _bytes(made.layout.x, itemsize) + (_bytes(made.layout.filter, itemsize) if made.layout.copied else 0)
        own = dict(_details(made.product, made.product.task))
        own["copied"] = "x from patches" + (", and the filter" if made.layout.copied else "")
        own["bytes beside the arrays"] += copied
        return list(own.items())
    if isinstance(made, Columned):
        product = next(iter(made.products.values()))
        own, copied = dict(_details(product, _task_of(product))), made.layout.copied
        own["copied"] = "x, which is added from columns" + (", and the filter" if copied else "")
        elements = made.elements + (prod(made.tensors[1].shape) if copied else 0)
        elements += prod(made.tensors[0].shape) if len(made.parts) > 1 else 0
        own["bytes beside the arrays"] += elements * itemsize
        parts = [("parts", len(made.parts)), ("channels of x that are added at a time", made.adder.block)]
        return [*parts, *own.items()]
    if isinstance(made, Overlapped):
        work = max(made.pieces, key=lambda piece: piece.inner.multiplications).work
        own = dict(_details(work, _task_of(work)))
        own["copied"] = "the filter, and x from blocks"
        own["bytes beside the arrays"] += sum(piece.elements for piece in made.pieces) * itemsize
        return [("parts of a block", len(made.pieces)), *own.items()]
    if isinstance(made, LongSums):
        return _long(made)
    if isinstance(made, Reordered):
        names = [_NAMES[places.index(place)] for place, *_ in made.orders]
        copied = sum(_bytes(after, dtype.itemsize) for _, _, after, dtype in made.orders)
        own = dict(_details(made.work, task))
        return [
            *own.items(),
            ("copied", ", ".join(names)),
            ("bytes beside the arrays", copied + own["bytes beside the arrays"]),
        ]
    return (_tiled if made.kernel.startswith("winograd") else _direct)(made, task)


def _long(made):
    *_, last = made.blocks.order
    slices, problem = made.blocks.slices, made.task.problem
    sums = slices * problem.batch * problem.groups * problem.y_channels * prod(problem.y)
    return [
        ("kernel", "sum_long"),
        ("vectors along", ("channels", "taps of depth", "taps of height", "taps of width")[last]),
        ("slices of a sum", slices),
        ("tasks", problem.groups * slices),
        ("threads", made.blocks.threads),
        ("copied", "nothing"),
        ("bytes beside the arrays", sums * made.task.dtype.compute_itemsize),
    ]


def _tiled(job, task):
    operation, problem, *_ = task
    tiling, _, seconds = decide_for(task)
    tile, chosen = task.machine.tile, job.plan.chosen
    walk = tile_walks(operation, problem).parts[0].walk
    points, box = points_of(tiling, [walk])[0], tiles_of_box(job.plan)
    return [
        ("kernel", job.kernel),
        ("points of a tile on an axis", points),
        ("outputs of a tile along a row", points[2] + 1 - walk[2].taps),
        ("predicted seconds of one thread", round(seconds[0], 6) if seconds else None),
        ("predicted seconds of the direct sum", round(seconds[1], 6) if len(seconds) > 1 else None),
        ("box (batch, depth, height, width)", [chosen.images, *box]),
        ("chunk of channels", chosen.chunk),
        ("block of outputs", chosen.outputs),
        ("groups of a task", chosen.groups),
        ("tasks", Cutting(operation, problem, tiling, tile).tasks(operation, chosen, box)),
        ("threads", int(job.plan.blocks[0])),
        ("copied", "nothing into another layout"),
        ("bytes beside the arrays", shared_bytes(operation, problem, tiling, tile, chosen, box)),
    ]


def _tile(blocks):
    if blocks.lanewise:
        spread = ", spread in registers" if blocks.spreads else ""
        return f"lanes are channels of small groups side by side{spread}"
    return "columns are positions of a row" if blocks.positions_across else "columns are output channels"


class _Rows:
    """The rows of a plan that compute, as arrays, since a dgrad with many stride phases has hundreds of thousands.

    Each field of ``walks`` and ``windows`` is an array (rows, axes), each field of ``reads`` an array (rows).
    """

    def __init__(self, steps):
        packs = steps[:, -1] == PACKS
        rows = steps[~packs] if packs.any() else steps
        (of_walk, of_window), reads = (len(kind._fields) for kind in (AxisWalk, WindowAxis)), -1 - len(Reads._fields)
        walks, windows = rows[:, : 3 * of_walk], rows[:, 3 * of_walk : reads]
        self.walks = AxisWalk(*np.moveaxis(walks.reshape(-1, 3, of_walk), 2, 0))
        self.windows = WindowAxis(*np.moveaxis(windows.reshape(-1, 3, of_window), 2, 0))
        self.reads = Reads(*rows[:, reads:-1].T)
        self.taps = self.walks.taps.prod(1)

    def __len__(self):
        return len(self.taps)

    def boxes(self, batch, images):
        """Number of boxes of each row's walk."""
        return -(-batch // images) * (-(-self.walks.positions // np.maximum(self.windows.positions, 1))).prod(1)

    def box(self):
        """Positions of a box of the longest walk, on each axis."""
        return self.windows.positions[self.walks.positions.prod(1).argmax()].tolist()


def _tasks(job, blocks, rows):
    """Number of tasks of all walks."""
    operation, problem = job.task.operation, job.task.problem
    channels, outputs = job.task.tensors[0].shape[2], job.task.tensors[2].shape[2]
    if blocks.lanewise:
        parts = -(-problem.groups * outputs // blocks.outputs)
    else:
        parts = -(-problem.groups // blocks.groups) * -(-outputs // blocks.outputs)
    if operation == WGRAD:
        return parts * -(-channels // blocks.chunk) * blocks.slices * len(rows)
    if blocks.lanewise:  # a task has all stride phases
        boxes, with_taps = rows.boxes(problem.batch, 1), rows.taps > 0
        return parts * int(boxes[with_taps if with_taps.any() else slice(None)].max())
    return parts * int(rows.boxes(problem.batch, blocks.images).sum()) // blocks.phases


def _direct_bytes(job, blocks, taps):
    """Bytes of the packed filter, or of the slices' sums in wgrad; ``taps``: taps that are held at a time."""
    (source, _, target), machine = job.task.tensors, job.task.machine
    groups, channels, outputs = source.shape[1], source.shape[2], target.shape[2]
    itemsize = job.task.dtype.compute_itemsize
    lanes, strip = machine.vector_bytes // itemsize, machine.tile_column_bytes // itemsize
    if blocks.lanewise:
        words = channels // 2 if blocks.pairs else channels
        of_vector = lanes // max(words, outputs) * outputs if blocks.spreads else lanes
        elements = side_by_side(groups * outputs, blocks.outputs, of_vector, lanes)
        return elements * words * taps * blocks.slices * itemsize
    if job.task.operation == WGRAD:
        sizes = groups, channels, outputs, taps, blocks.chunk, blocks.outputs, lanes, itemsize
        return blocks.slices * slice_bytes(*sizes) if blocks.slices > 1 else 0
    if blocks.packs:
        return 0
    packed = outputs if blocks.positions_across else packed_outputs(outputs, lanes, strip)
    return groups * channels * packed * taps * itemsize


def _packed(job, blocks, reads):
    if job.task.operation == WGRAD:
        return None
    if reads.strips.any():
        return "each task, but for whole vectors of outputs that are adjacent"
    return "each task" if blocks.packs else "all tasks, before the others"


def _phases(job, blocks, rows):
    """Number of walks that a task computes together, except a walk without taps, which only stores zeros."""
    lanewise = blocks.lanewise and job.task.operation != WGRAD
    return max(1, int((rows.taps > 0).sum())) if lanewise else blocks.phases


def _copied(job, blocks, reads):
    if not blocks.lanewise:
        if job.task.operation == WGRAD and not reads.channels_inside.all():
            return "windows of the source, with positions adjacent, where the kernel does not read it in place"
        always = reads.copies.all()
        return "windows of the source" + ("" if always else ", where the kernel does not read it in place")
    source, _, target = job.task.tensors
    single = source.shape[2] == target.shape[2] == 1
    adjacent = single and all(tensor.strides[1] == tensor.itemsize for tensor in (source, target))
    whole = adjacent or blocks.spreads == 2
    return "nothing, if vectors are whole" if whole else "the source of a box, and its sums"


def _direct(job, task):
    blocks, rows = Blocks(*job.plan.blocks.tolist()), _Rows(job.plan.steps)
    taps = int(rows.taps.max()) if job.task.operation == WGRAD else prod(job.task.problem.kernel)
    return [
        ("kernel", job.kernel),
        ("form", job.plan.form),
        ("not", [f"{name}, since {reason}" for name, reason in job.plan.refusals]),
        ("tile", _tile(blocks)),
        ("walks", len(rows)),
        ("box (batch, depth, height, width)", [blocks.images, *rows.box()]),
        ("chunk of channels", blocks.chunk),
        ("block of outputs", blocks.outputs),
        ("groups of a task", blocks.groups),
        ("slices of a sum", blocks.slices),
        ("stride phases of a task", _phases(job, blocks, rows)),
        ("filter packed by", _packed(job, blocks, rows.reads)),
        ("target stored past the cache", bool(blocks.nontemporal)),
        ("tasks", _tasks(job, blocks, rows)),
        ("threads", blocks.threads),
        ("copied", _copied(job, blocks, rows.reads)),
        ("bytes beside the arrays", _direct_bytes(job, blocks, taps)),
    ]
