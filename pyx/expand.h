/* to[j] = of[index[j]] for j < lanes, whole vectors of them; where it is ``local``, an index of the first vector holds for
 * each vector, counted from its own begin, and GCC has a shuffle for that. */
#ifndef CONVGRAD_EXPAND_H
#define CONVGRAD_EXPAND_H

#include <stdint.h>

#include "shuffle.h"
#include "ukernel.h"

#define EXPAND(NAME, WORD, INDEX)                                                                                      \
    typedef WORD NAME##_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(WORD)), may_alias));           \
    typedef INDEX NAME##_index __attribute__((vector_size(VECTOR_BYTES)));                                             \
    static inline void NAME(void *to_words, const void *of_words, const int32_t *index, int64_t lanes, int local)      \
    {                                                                                                                  \
        const int64_t length = VECTOR_BYTES / sizeof(WORD);                                                            \
        WORD *to = to_words;                                                                                           \
        const WORD *of = of_words;                                                                                     \
        if (local && SHUFFLES_BY_VECTORS) {                                                                            \
            NAME##_index order;                                                                                        \
            for (int64_t j = 0; j < length; j++)                                                                       \
                order[j] = index[j];                                                                                   \
            for (int64_t j = 0; j < lanes; j += length)                                                                \
                *(NAME##_vector *)(to + j) = SHUFFLE_BY(*(const NAME##_vector *)(of + j), order);                      \
        } else {                                                                                                       \
            for (int64_t j = 0; j < lanes; j++)                                                                        \
                to[j] = of[index[j]];                                                                                  \
        }                                                                                                              \
    }

EXPAND(expand_words, uint32_t, int32_t)
EXPAND(expand_double_words, uint64_t, int64_t)
#undef EXPAND

#endif
