"""Several plans as one plan, whose operands are numbers of a call's arrays. Common packing is done once."""

from .plan import WORKSPACE, Plan


def joined(parts, arrays):
    """One plan for ``parts``, pairs of a plan and the numbers of its source, filter and target among the call's arrays.

    A pointer of its launches below ``arrays`` is the number of an array; pointer ``arrays + i`` is workspace i.
    """
    launches, workspaces, packed = [], [], {}
    for plan, places in parts:
        number = dict(enumerate(places))
        for launch in plan.launches:
            packs = len(launch.pointers) == 2 and launch.pointers[0] < WORKSPACE <= launch.pointers[1]
            for pointer in launch.pointers:
                if pointer not in number and not packs:
                    number[pointer] = _append(workspaces, plan.workspaces[pointer - WORKSPACE], arrays)
            if packs:
                operand, space = launch.pointers
                work = launch._replace(pointers=(number[operand],))
                if work in packed:
                    number[space] = packed[work]
                    continue
                number[space] = packed[work] = _append(workspaces, plan.workspaces[space - WORKSPACE], arrays)
            launches.append(launch._replace(pointers=tuple(number[pointer] for pointer in launch.pointers)))
    return Plan(tuple(launches), tuple(workspaces))


def _append(workspaces, size, arrays):
    workspaces.append(size)
    return arrays + len(workspaces) - 1
