/* to[j] = of[index[j]] for j < lanes, in whole vectors.
 *
 * same_shuffle: all vectors have the same permutation, relative to the vector's first element, and read one vector.
 * two_vectors: the indices of the vector that begins at j lie in [index[j], index[j] + 2 * length). Two loads and one
 * shuffle suffice, and `of` is read up to the end of this range. */
#ifndef CONVGRAD_EXPAND_H
#define CONVGRAD_EXPAND_H

#include <stdint.h>

#include "copy/shuffle.h"
#include "tile/ukernel.h"

#define EXPAND(NAME, WORD, INDEX)                                                                                      \
    typedef WORD NAME##_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(WORD)), may_alias));           \
    typedef INDEX NAME##_index __attribute__((vector_size(VECTOR_BYTES)));                                             \
    typedef int32_t NAME##_offsets                                                                                     \
        __attribute__((vector_size(VECTOR_BYTES / sizeof(WORD) * 4), aligned(4), may_alias));                          \
    static inline void NAME(void *to_words, const void *of_words, const int32_t *index, int64_t lanes,                 \
                            int same_shuffle, int two_vectors)                                                         \
    {                                                                                                                  \
        const int64_t length = VECTOR_BYTES / sizeof(WORD);                                                            \
        WORD *to = to_words;                                                                                           \
        const WORD *of = of_words;                                                                                     \
        if (same_shuffle && SHUFFLES_BY_VECTORS) {                                                                     \
            const NAME##_index order = __builtin_convertvector(*(const NAME##_offsets *)index, NAME##_index);          \
            for (int64_t j = 0; j < lanes; j += length)                                                                \
                *(NAME##_vector *)(to + j) = SHUFFLE_BY(*(const NAME##_vector *)(of + j), order);                      \
        } else if (two_vectors && SHUFFLES_BY_VECTORS) {                                                               \
            for (int64_t j = 0; j < lanes; j += length) {                                                              \
                const NAME##_offsets offsets = *(const NAME##_offsets *)(index + j) - index[j];                        \
                const NAME##_index order = __builtin_convertvector(offsets, NAME##_index);                             \
                const NAME##_vector *first = (const NAME##_vector *)(of + index[j]);                                   \
                *(NAME##_vector *)(to + j) = SHUFFLE_BOTH_BY(first[0], first[1], order);                               \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t j = 0; j < lanes; j++)                                                                        \
                to[j] = of[index[j]];                                                                                  \
        }                                                                                                              \
    }

EXPAND(spread_channels_of_4, uint32_t, int32_t)
EXPAND(spread_channels_of_8, uint64_t, int64_t)
#undef EXPAND

#endif
