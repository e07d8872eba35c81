"""CUDA text -> kernels: what NVRTC receives, and what it made of it."""

import re
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r'^#include "(.+)"$')


def _path(name):
    """A file of ``cuda/``, or the C header that both backends share."""
    if name.startswith("convgrad/"):
        return files(__package__.rpartition(".")[0]) / "include" / name
    return files(__package__) / "cuda" / name


def _lines(name, seen):
    """The lines of a file with what it includes in its place, each file once; compilers report its own line numbers."""
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
    """All of the text that a compiler needs: the macros (pairs of strings), our headers and the source.

    NVRTC finds no header by itself, and CuPy passes it none, so files are joined here.
    """
    defined = [f"#define {name} {value}" for name, value in macros]
    return "\n".join([*defined, *_lines(source, set()), ""])


def is_grouped(macros):
    """Whether warpgroups multiply, which sm_90a alone has instructions for."""
    return dict(macros).get("WARPGROUPS", "0") != "0"
