/* The transforms of Winograd's algorithm, and what else of it is a loop over vectors. */
#ifndef CONVGRAD_WINOGRAD_H
#define CONVGRAD_WINOGRAD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tile/ukernel.h"

#define WINOGRAD_LANES (VECTOR_BYTES / (int64_t)sizeof(float))

typedef float winograd_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(float)), may_alias));

/* Applies one matrix along an axis: value i of a line is the vectors at of + i * of_step, result k those at
 * to + k * to_step, and lines lie of_line and to_line apart. */
typedef void (*winograd_transform)(const float *of, int64_t of_step, int64_t of_line, float *to, int64_t to_step,
                                   int64_t to_line, int64_t lines, int64_t vectors);

#include "winograd_transforms.h"

/* Of elements: the greatest magnitude, and one less than the least that is not zero, as bits of floats. NaN and infinity are
 * greater than all others; one less than zero is, too. */
typedef struct {
    uint32_t most, least;
} magnitudes;

static inline void winograd_note(magnitudes *m, const float *of, int64_t count)
{
    uint32_t most = m->most, least = m->least;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, of + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
        bits -= 1;
        least = bits < least ? bits : least;
    }
    m->most = most;
    m->least = least;
}

/* The greatest magnitude alone. */
static inline uint32_t winograd_largest(const float *of, int64_t count, uint32_t largest)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, of + i, sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* of[0] += of[slice] + .. of so many slices, in this order; ``columns``: whole vectors. */
static inline void winograd_add_slices(float *of, int64_t slice, int64_t slices, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += WINOGRAD_LANES) {
        winograd_vector sum = *(const winograd_vector *)(of + j);
        for (int64_t i = 1; i < slices; i++)
            sum += *(const winograd_vector *)(of + i * slice + j);
        *(winograd_vector *)(of + j) = sum;
    }
}

#endif
