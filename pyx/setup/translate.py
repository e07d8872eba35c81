"""Cython as ``python -m cython`` runs it, in half the time."""

import gc
import runpy

from Cython.Compiler import PyrexTypes

#: The type in which the sums of a storage type are formed, as base/scalar.pxd names both.
COMPUTE = {"f16": "float", "bf16": "float", "float": "float", "double": "double", "int": "int"}

#: Cython's own, which is no promise of it: where there is none, all are written, and the build takes longer.
_all_permutations = getattr(PyrexTypes, "get_all_specialized_permutations", None)


def _permutations_that_occur(fused_types):
    """Of the fused types' permutations those that are called: of the others Cython would write ten for each five."""
    found = []
    for name, chosen in _all_permutations(fused_types):
        types = {fused.name: str(chosen[fused]) for fused in chosen}
        if not types.keys() >= {"scalar", "compute"} or COMPUTE[types["scalar"]] == types["compute"]:
            found.append((name, chosen))
    return found


if __name__ == "__main__":
    gc.disable()  # there is little garbage among millions of objects
    if _all_permutations is not None:
        PyrexTypes.get_all_specialized_permutations = _permutations_that_occur
    runpy.run_module("cython", run_name="__main__")
