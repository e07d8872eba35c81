"""Storage types of arrays, compute types of sums, and the row numbers of dtypes.TABLE."""

from libc.stdint cimport int64_t

cdef extern from "base/scalar.h" nogil:
    ctypedef struct f16:
        unsigned short bits
    ctypedef struct bf16:
        unsigned short bits
    float f16_widen(f16 value)
    f16 f16_narrow(float value)
    void f16_widen_row(float *to, const f16 *of, int64_t count)
    void f16_narrow_row(f16 *to, const float *of, int64_t count)
    float bf16_widen(bf16 value)
    bf16 bf16_narrow(float value)

cdef extern from "base/bfloat.h" nogil:
    void bf16_widen_row(float *to, const bf16 *of, int64_t count)
    void bf16_narrow_row(bf16 *to, const float *of, int64_t count)

cdef enum:
    F16 = 0
    BF16 = 1
    F32 = 2
    F64 = 3
    I32 = 4

ctypedef fused scalar:
    f16
    bf16
    float
    double
    int

ctypedef fused compute:
    float
    double
    int

ctypedef fused real:
    float
    double


cdef inline compute widen(scalar value, compute kind) noexcept nogil:
    """value in the type of ``kind``, exactly."""
    if scalar is f16:
        return <compute>f16_widen(value)
    elif scalar is bf16:
        return <compute>bf16_widen(value)
    else:
        return <compute>value


cdef inline scalar narrow(compute value, scalar kind) noexcept nogil:
    """value in the type of ``kind``, rounded to nearest even."""
    if scalar is f16:
        return f16_narrow(<float>value)
    elif scalar is bf16:
        return bf16_narrow(<float>value)
    else:
        return <scalar>value


cdef inline void widen_row(compute *to, const scalar *of, int64_t count) noexcept nogil:
    """to[i] = of[i] for adjacent elements, exactly."""
    cdef int64_t i
    if scalar is f16 and compute is float:
        f16_widen_row(to, of, count)
    elif scalar is bf16 and compute is float:
        bf16_widen_row(to, of, count)
    else:
        for i in range(count):
            to[i] = widen(of[i], to[0])


cdef inline void narrow_row(scalar *to, const compute *of, int64_t count) noexcept nogil:
    """to[i] = of[i] for adjacent elements, rounded to nearest even."""
    cdef int64_t i
    if scalar is f16 and compute is float:
        f16_narrow_row(to, of, count)
    elif scalar is bf16 and compute is float:
        bf16_narrow_row(to, of, count)
    else:
        for i in range(count):
            to[i] = narrow(of[i], to[0])


cdef inline object unknown_dtype(int dtype, expected):
    return ValueError(f"dtype must be one of {expected}, numbers of dtypes.TABLE, was {dtype}")
