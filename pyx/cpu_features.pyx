"""The instruction sets of this machine. Compiled for the lowest level, so that it runs everywhere."""

cdef extern from "cpu_features.h" nogil:
    bint runs_x86_64(int level)
    bint runs_aarch64()
    bint has_half_vectors "splits_vectors"()
    int c_matrix_units "matrix_units"()
    bint may_use_matrices "allows_matrices"()
    int c_matrix_units_of "matrix_units_of"(unsigned edx, unsigned eax, unsigned long long saved)
    enum:
        AMX_BF16, AMX_FP16, AVX512_FP16


def supported():
    """Names of the instruction set levels that this machine runs, in increasing order."""
    names = [f"x86_64_v{level}" for level in (2, 3, 4) if runs_x86_64(level)]
    if runs_aarch64():
        names.append("aarch64")
    return tuple(names)


def splits_vectors():
    """Whether this machine computes vectors of 64 bytes as two halves."""
    return bool(has_half_vectors())


cdef tuple names_of(int units):
    names = (AMX_BF16, "AMX-BF16"), (AMX_FP16, "AMX-FP16"), (AVX512_FP16, "AVX512-FP16")
    return tuple([name for unit, name in names if units & unit])


def matrix_units():
    """Names of the instructions that multiply 16-bit types on this machine, if the operating system allows them."""
    return names_of(c_matrix_units())


def matrix_units_of(unsigned edx, unsigned eax, unsigned long long saved):
    """``matrix_units`` of any machine, from edx and eax of CPUID leaf 7 (subleaves 0 and 1) and XCR0."""
    return names_of(c_matrix_units_of(edx, eax, saved))


def allows_matrices():
    """Whether this process may multiply bfloat16 with the tile registers of AMX. Asks the system for permission."""
    return bool(may_use_matrices())
