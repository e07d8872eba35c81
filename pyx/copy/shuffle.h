/* Unaligned vectors of 32-bit elements, and permutations of their lanes.
 *
 * SHUFFLE(a, b, i ..): lane k of the result is lane i[k] of a followed by b.
 * SHUFFLE_BY(a, order): lane k of the result is lane order[k] of a.
 * SHUFFLE_BOTH_BY(a, b, order): lane k of the result is lane order[k] of a followed by b.
 * The last two take the indices as a vector. They work only if SHUFFLES_BY_VECTORS is 1. */
#ifndef CONVGRAD_SHUFFLE_H
#define CONVGRAD_SHUFFLE_H

#include <stdint.h>

typedef uint32_t four_words __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t eight_words __attribute__((vector_size(32), aligned(4), may_alias));

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define SHUFFLES_BY_VECTORS 0
#define SHUFFLE_BY(a, order) ((void)(order), a)
#define SHUFFLE_BOTH_BY(a, b, order) ((void)(order), (void)(b), a)
#else /* GCC has __builtin_shufflevector only from version 12 on */
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#define SHUFFLES_BY_VECTORS 1
#define SHUFFLE_BY(a, order) __builtin_shuffle(a, order)
#define SHUFFLE_BOTH_BY(a, b, order) __builtin_shuffle(a, b, order)
#endif

#endif
