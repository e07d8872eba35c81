"""Details of the plans of direct and of small groups, for ``explain``."""

from math import prod

import numpy as np

from ...problem import WGRAD, AxisWalk
from ..machine import MATRICES
from ..plan.scratch import SCRATCH
from ..plan.shared import packed_outputs, side_by_side, slice_bytes
from ..plan.steps import PACKS, Blocks, Reads, WindowAxis


def _tile(blocks):
    if blocks.lanewise:
        spread = ", spread in registers" if blocks.spreads else ""
        return f"lanes are channels of small groups side by side{spread}"
    if blocks.positions_across:
        return "columns are positions of a row"
    return f"columns are output channels{', in the tile registers of AMX' if blocks.pairs == MATRICES else ''}"


class _Rows:
    """The rows of a plan, without rows that only pack the filter. They are arrays, as there may be 100,000s of rows.

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


def details(task, job):
    """Names and values about the job of a task, for ``explain``."""
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
        (SCRATCH, _direct_bytes(job, blocks, taps)),
    ]
