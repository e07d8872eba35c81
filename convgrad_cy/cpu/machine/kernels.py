"""The kernels of the best instruction set that this machine runs, chosen at import."""

import os
from functools import lru_cache
from importlib import import_module, util

from ... import _cpu_features
from ...settings.scratch import get_scratch_limit
from ...settings.threads import get_num_threads as threads
from . import MATRICES, Machine
from .caches import cache_sizes
from .processor import processor
from .tuning import tuning_of_processor

_PACKAGE = __package__.partition(".")[0]

#: Instruction sets that use the module of another one: that module has their functions, too.
_MODULES = {"x86_64_amx": "x86_64_v4"}

#: Instruction sets that CONVGRAD_CY_ISA must name: they have run on a model, and on no processor yet.
_ON_REQUEST = {"x86_64_amx"}


def _is_built(name):
    return util.find_spec(f"{_PACKAGE}._kernels_{name}") is not None


def available_isas():
    """The instruction sets that were built and that this machine supports, the best one last."""
    names = [name for name in _cpu_features.supported() if _is_built(name)]
    if names[-1:] == [*_MODULES.values()] and _cpu_features.allows_matrices():
        names += _MODULES
    return tuple(names)


def _chosen_isa():
    allowed = available_isas()
    wanted = os.environ.get("CONVGRAD_CY_ISA", "")
    if not allowed:
        supported = ", ".join(_cpu_features.supported()) or "no known level"
        raise ImportError(f"convgrad_cy was built without kernels for this machine, which supports {supported}")
    if wanted and wanted not in allowed:
        raise ImportError(f"CONVGRAD_CY_ISA must be one of {', '.join(allowed)} on this machine, was {wanted!r}")
    return wanted or [name for name in allowed if name not in _ON_REQUEST][-1]


#: Name of the instruction set in use, and its module.
isa = _chosen_isa()
compiled = import_module(f"._kernels_{_MODULES.get(isa, isa)}", _PACKAGE)
*_sizes, _pairs = compiled.tile()
_tile = (*_sizes, MATRICES if isa == "x86_64_amx" else int(_pairs))
_caches = cache_sizes()
_splits_vectors = _cpu_features.splits_vectors()
_tuning = tuning_of_processor(processor(), _tile[2])


def openmp():
    """The OpenMP interface that the kernels were built with."""
    return compiled.openmp()


@lru_cache(maxsize=16)
def _machine(count, scratch_bytes):
    """The ``Machine`` with ``count`` threads and a scratch limit."""
    *inner, last = _caches
    return Machine(*_tile, last, count, _splits_vectors, *inner, _tuning, scratch_bytes)


def this_machine(count=None):
    """The ``Machine`` for plans of ``count`` threads; None takes the current setting."""
    return _machine(threads() if count is None else count, get_scratch_limit())


def run_tiles(dtype, depth, count):
    """Run ``count`` full tiles on each thread, and return their FLOP. No kernel is faster than they."""
    return compiled.run_tiles(dtype.code, depth, count, threads(), this_machine().tile.pairs(dtype))
