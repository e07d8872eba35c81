"""The walks of a task in sets that are small enough for the arguments of one launch."""

from ..problem import DGRAD

#: Walks of the three axes that one launch takes: each is 80 bytes, of 4 KB of arguments.
MOST_WALKS = 36


def walk_sets(task):
    """Triples of lists of ``AxisWalk``, to be done in this order; a set stands for all products of its three lists.

    Where no tap reaches some phases of ``dgrad``, these are walks without taps, which leave zeros; if there were too
    many of them, one such walk of all positions goes before the others.
    """
    problem = task.problem
    if task.operation != DGRAD:
        return [tuple([walk] for walk in problem.forward_walk())]
    if sum(problem.stride) <= MOST_WALKS:
        return [tuple(problem.complete_backward_phases())]
    unreached = problem.unreached_walk()
    zeros = [] if unreached is None else [tuple([walk] for walk in unreached)]
    return [*zeros, *parts(tuple(problem.backward_phases()))]


def parts(axes):
    """The walks of the three axes in sets of at most MOST_WALKS, whose products are together that of all."""
    if sum(map(len, axes)) <= MOST_WALKS:
        return [axes] if all(axes) else []
    longest = max(range(3), key=lambda i: len(axes[i]))
    walks = axes[longest]
    halves = (walks[: len(walks) // 2], walks[len(walks) // 2 :])
    return [part for half in halves for part in parts((*axes[:longest], half, *axes[longest + 1 :]))]
