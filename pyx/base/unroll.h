/* UNROLLED(i, count) is a loop over 0 <= i < count that is unrolled completely, so that the arrays that it indexes stay
 * in registers. count is a constant of at most 32, at least once the function is inlined. Clang ignores GCC's pragma.
 * ROLLED stands before a loop that is not unrolled, to save code. */
#ifndef CONVGRAD_UNROLL_H
#define CONVGRAD_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#define ROLLED _Pragma("GCC unroll 1")
#endif
#define UNROLLED(i, count) UNROLL for (int i = 0; i < (count); i++)

#endif
