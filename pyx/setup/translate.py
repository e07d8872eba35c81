"""``python -m cython``, 2x faster."""

import gc
import runpy

from Cython.Compiler import PyrexTypes

#: The compute type of each storage type, with the names of base/scalar.pxd.
COMPUTE = {"f16": "float", "bf16": "float", "float": "float", "double": "double", "int": "int"}

#: A private function of Cython. Without it, all permutations are written, and the build takes longer.
_all_permutations = getattr(PyrexTypes, "get_all_specialized_permutations", None)


def _permutations_that_occur(fused_types):
    """The permutations of the fused types that are called: 5 of the 15 pairs of storage type and compute type."""
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
