"""Plans of the sum itself, by whichever of the two families computes it."""

from convgrad_cy.cpu import direct, small_groups
from convgrad_cy.cpu.plan.steps import Blocks


def plan_of(operation, problem, dtype, positions_adjacent, machine):
    """What small groups plan, or, where they decline, direct does."""
    asked = operation, problem, dtype, positions_adjacent, machine
    family = small_groups.plan if small_groups.found(*asked).reason is None else direct.plan
    return family.plan(*asked)


def blocks_of(*asked):
    """Its blocks."""
    return Blocks(*plan_of(*asked).blocks.tolist())
