/* The sliding tiles, compiled once for each instruction set. */
#include "tile/slide.h"
#include "tile/ukernel.h"

/* Taps of a row, positions of a chunk and rows of a block of sums: all are in registers, beside one for a column. */
#define SLIDE_MOST 12
#define SLIDE_ROWS 4
#define SLIDE_AT_MOST_(most, count) ((count) < (most) ? (count) : (most))
#define SLIDE_POSITIONS(step, taps) SLIDE_AT_MOST_((step) == 1 ? SLIDE_MOST : 8, REGISTERS - 1 - (taps))
/* What CASE makes of each number of taps. */
#define SLIDE_CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
#define SLIDE_BLOCK(taps) SLIDE_AT_MOST_(SLIDE_ROWS, (REGISTERS - 2) / (taps))

/* A vector of its own: not a part of the instructions that use it. With CONVGRAD_WIDE, no register may hold one. */
#if defined(CONVGRAD_WIDE)
#define KEEP_VECTOR(vector)
#elif defined(__x86_64__)
#define KEEP_VECTOR(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define KEEP_VECTOR(vector) __asm__("" : "+w"(vector))
#else
#define KEEP_VECTOR(vector)
#endif

#define TYPE float
#define SLIDE slide_f32
#include "tile/slide_template.h"
#undef TYPE
#undef SLIDE

#define TYPE double
#define SLIDE slide_f64
#include "tile/slide_template.h"
#undef TYPE
#undef SLIDE

#define TYPE uint32_t
#define SLIDE slide_u32
#include "tile/slide_template.h"
#undef TYPE
#undef SLIDE
