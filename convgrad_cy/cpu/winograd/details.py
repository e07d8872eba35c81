"""Details of the plans of Winograd's algorithm, for ``explain``."""

from ..plan.scratch import SCRATCH
from .cuts import Cutting
from .memory import shared_bytes
from .walks import points_of, tile_walks, tiles_of_box


def details(task, tiling, seconds, job):
    """Names and values about the job of a task, for ``explain``; ``seconds``: of the model, or empty."""
    operation, problem, *_ = task
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
        (SCRATCH, shared_bytes(operation, problem, tiling, tile, chosen, box)),
    ]
