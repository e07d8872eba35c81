"""The walks of a task in sets that are small enough for the arguments of one launch."""

from ..problem import DGRAD

#: Most walks of the three axes in one launch. Each has 80 bytes, and arguments have at most 4 KB.
MOST_WALKS = 36


def walk_sets(task):
    """Triples of lists of ``AxisWalk``, in the order of their launches. A set stands for all products of its lists.

    Phases of ``dgrad`` that no tap reaches are walks without taps, which write zeros. If there are too many of them,
    one such walk of all positions precedes the others.
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
    """Divide the walks of the three axes into sets of at most MOST_WALKS, whose products are together all products."""
    if sum(map(len, axes)) <= MOST_WALKS:
        return [axes] if all(axes) else []
    longest = max(range(3), key=lambda i: len(axes[i]))
    walks = axes[longest]
    halves = (walks[: len(walks) // 2], walks[len(walks) // 2 :])
    return [part for half in halves for part in parts((*axes[:longest], half, *axes[longest + 1 :]))]
