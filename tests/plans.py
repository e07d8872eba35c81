"""Plans of the sum of the definition, by the one of the two families that computes it."""

from convgrad_cy.cpu import direct, small_groups
from convgrad_cy.cpu.plan.steps import Blocks


def plan_of(operation, problem, dtype, positions_adjacent, machine):
    """The plan of small groups, or of direct if they decline."""
    asked = operation, problem, dtype, positions_adjacent, machine
    family = small_groups.plan if small_groups.outline_or_reason(*asked).reason is None else direct.plan
    return family.plan(*asked)


def blocks_of(*asked):
    """The blocks of the plan."""
    return Blocks(*plan_of(*asked).blocks.tolist())
