"""All mutants, kernels before planner."""

from mutants.direct import DIRECT_MUTANTS
from mutants.limits import LIMIT_MUTANTS
from mutants.nonfinite import NONFINITE_MUTANTS
from mutants.operands import OPERAND_MUTANTS
from mutants.planner import PLANNER_MUTANTS
from mutants.small_groups import SMALL_GROUPS_MUTANTS
from mutants.tiles import TILE_MUTANTS
from mutants.work import WORK_MUTANTS

_KERNELS = (*OPERAND_MUTANTS, *NONFINITE_MUTANTS, *DIRECT_MUTANTS, *SMALL_GROUPS_MUTANTS, *TILE_MUTANTS)
MUTANTS = (*_KERNELS, *PLANNER_MUTANTS, *WORK_MUTANTS, *LIMIT_MUTANTS)
