"""The text of CUDA kernels for NVRTC, and the options that it depends on."""

import re
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r'^#include "(.+)"$')


def _path(name):
    """The path of a file of ``cuda/``, or of the C header that both backends share."""
    if name.startswith("convgrad/"):
        return files(__package__.rpartition(".")[0]) / "include" / name
    return files(__package__) / "cuda" / name


def _lines(name, seen):
    """The lines of a file with its includes inserted, each file once. Compilers report the original line numbers."""
    seen.add(name)
    yield f'#line 1 "{name}"'
    for number, line in enumerate(_path(name).read_text().splitlines(), 1):
        found = _INCLUDE.match(line)
        if found is None:
            yield line
        elif found[1] not in seen:
            yield from _lines(found[1], seen)
            yield f'#line {number + 1} "{name}"'
        else:
            yield ""


@cache
def text(source, macros=()):
    """All of the text for a compiler: the macros (pairs of strings), our headers and the source.

    NVRTC finds no headers, and CuPy passes none to it, so the files are joined here.
    """
    defined = [f"#define {name} {value}" for name, value in macros]
    return "\n".join([*defined, *_lines(source, set()), ""])


def is_grouped(macros):
    """Whether warpgroups multiply. Only sm_90a has instructions for this."""
    return dict(macros).get("WARPGROUPS", "0") != "0"
