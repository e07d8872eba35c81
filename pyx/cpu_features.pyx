"""Which levels of the instruction set this machine runs; compiled for the lowest of them."""

cdef extern from "cpu_features.h" nogil:
    bint runs_x86_64(int level)
    bint runs_aarch64()
    bint has_half_vectors "splits_vectors"()


def supported():
    """Names of the instruction set levels that this machine runs, the lowest first."""
    names = [f"x86_64_v{level}" for level in (2, 3, 4) if runs_x86_64(level)]
    if runs_aarch64():
        names.append("aarch64")
    return tuple(names)


def splits_vectors():
    """Whether this machine computes vectors of 64 bytes as two halves."""
    return bool(has_half_vectors())
