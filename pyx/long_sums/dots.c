/* The sums of dots.h, compiled once for each instruction set. */
#include "long_sums/dots.h"
#include "tile/ukernel.h"

/* Rows and outputs of a register tile. */
#if REGISTERS > 16
#define DOT_ROWS 4
#define DOT_OUTPUTS 6
#else
#define DOT_ROWS 2
#define DOT_OUTPUTS 4
#endif

/* LOAD_PART without masked loads: copies the first elements of a vector and leaves the rest zero. */
#define BY_COPYING(of, count)                                                                                          \
    VECTOR part = {0};                                                                                                 \
    memcpy(&part, of, (size_t)(count) * sizeof(TYPE));                                                                 \
    return part;

#define TYPE float
#define DOTS dots_f32
#if defined(__AVX512F__) && VECTOR_BYTES == 64
#define LOAD_PART(of, count) return (VECTOR)_mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), of);
#else
#define LOAD_PART BY_COPYING
#endif
#include "long_sums/dots_template.h"
#undef TYPE
#undef DOTS
#undef LOAD_PART

#define TYPE double
#define DOTS dots_f64
#if defined(__AVX512F__) && VECTOR_BYTES == 64
#define LOAD_PART(of, count) return (VECTOR)_mm512_maskz_loadu_pd((__mmask8)((1u << (count)) - 1), of);
#else
#define LOAD_PART BY_COPYING
#endif
#include "long_sums/dots_template.h"
#undef TYPE
#undef DOTS
#undef LOAD_PART

#define TYPE uint32_t
#define DOTS dots_u32
#define LOAD_PART BY_COPYING
#include "long_sums/dots_template.h"
#undef TYPE
#undef DOTS
#undef LOAD_PART
