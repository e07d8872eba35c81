"""The fake CuPy as a module that any process imports, with kernels that fail as DRILL_FAULTS says.

DRILL_FAULTS is a JSON list of pairs: a fault, and a regular expression, searched in ``source kernel MACRO=value ...``:

    wrong    the first bytes of the result are changed
    raises   the launch is refused, without further harm
    sticky   the launch is refused, and then every call in this process
    ends     the process ends
    hangs    the process does nothing any more
"""

import json
import os
import re
import sys
import time
from pathlib import Path

import numpy as np

_TESTS = Path(__file__).parents[2]
sys.path += [str(_TESTS), str(_TESTS / "gpu")]

import fake_cupy  # noqa: E402

from convgrad_cy.gpu import cubins  # noqa: E402

os.environ.setdefault(cubins.VARIABLE, fake_cupy.new_folder())

_FAULTS = json.loads(os.environ.get("DRILL_FAULTS", "[]"))
_broken = []


def _check():
    if _broken:
        raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")


def _variant(code, kernel):
    defined, _, text = code.partition("#line")
    macros = re.findall(r"^#define (\w+) (.*)$", defined, re.MULTILINE)
    return " ".join([re.match(r' 1 "(.+)"', text)[1], kernel, *map("=".join, macros)])


class _Function(fake_cupy.Function):
    def __init__(self, code, name):
        super().__init__(code, name)
        self._variant = _variant(code, name)

    def __call__(self, grid, block, args, **others):
        _check()
        faults = {what for what, where in _FAULTS if re.search(where, self._variant)}
        if "ends" in faults:
            os._exit(9)
        if "hangs" in faults:
            time.sleep(1000)
        if "sticky" in faults:
            _broken.append(self._variant)
            _check()
        if "raises" in faults:
            raise RuntimeError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        super().__call__(grid, block, args, **others)
        if "wrong" in faults:
            *_, result = (argument for argument in args if not isinstance(argument, np.ndarray))
            memory = getattr(result, "data", result)
            first = fake_cupy.ndarray((4,), np.uint8, memory).host
            first ^= 0x5A


def _checked(function):
    def checked(*args, **keywords):
        _check()
        return function(*args, **keywords)

    return checked


fake_cupy.Function = _Function
for _owner, _name in ((fake_cupy, "array"), (fake_cupy, "zeros"), (fake_cupy.ndarray, "get")):
    setattr(_owner, _name, _checked(getattr(_owner, _name)))
fake_cupy.ndarray.__setitem__ = lambda self, index, value: self.host.__setitem__(index, value.host)
_module = fake_cupy._module()
_module.__version__, _module.asarray, _module.is_available = "14", fake_cupy.array, lambda: True
_module.cuda.set_allocator = lambda allocator: None
_module.cuda.get_current_stream().synchronize = _check
_module.cuda.runtime.driverGetVersion = lambda: 13000
globals().update({name: value for name, value in vars(_module).items() if name == "__version__" or name[:2] != "__"})
