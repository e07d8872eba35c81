/* The transforms of Winograd's algorithm, and its other loops over vectors. */
#ifndef CONVGRAD_WINOGRAD_H
#define CONVGRAD_WINOGRAD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tile/ukernel.h"

#define WINOGRAD_LANES (VECTOR_BYTES / (int64_t)sizeof(float))

typedef float winograd_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(float)), may_alias));

/* Applies one matrix along an axis. Value i of line l is the vectors at of + i * of_step + l * of_line, and result k
 * the vectors at to + k * to_step + l * to_line. */
typedef void (*winograd_transform)(const float *of, int64_t of_step, int64_t of_line, float *to, int64_t to_step,
                                   int64_t to_line, int64_t lines, int64_t vectors);

#include "winograd_transforms.h"

/* Magnitudes as float bits: most = max of bits, least = min of (bits - 1). 0 - 1 wraps to the maximum, so zeros do not
 * count in `least`. NaN and infinity exceed all finite values. */
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

/* The greatest magnitude as float bits, at least `largest`. */
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

/* of[j] = ((of[j] + of[slice + j]) + of[2 * slice + j]) + .. over `slices` slices, for j < columns in whole vectors. */
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
