"""Which levels of the instruction set this machine runs; compiled for the lowest of them."""

cdef extern from "cpu_features.h" nogil:
    bint runs_x86_64(int level)
    bint runs_aarch64()


def supported():
    """Names of the instruction set levels that this machine runs, the lowest first."""
    names = [f"x86_64_v{level}" for level in (2, 3, 4) if runs_x86_64(level)]
    if runs_aarch64():
        names.append("aarch64")
    return tuple(names)
