/* A model of AMX's tile registers, for pyx/tile/matrix.c built with CONVGRAD_CY_TILE_MODEL=1.
 *
 * It follows the instructions' definitions in Intel's manual, and ends the process where the processor would raise an
 * exception. Each thread has its own registers. */
#ifndef CONVGRAD_TILE_MODEL_H
#define CONVGRAD_TILE_MODEL_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_TILES = 8, MODEL_ROWS = 16, MODEL_ROW_BYTES = 64, MODEL_ROW_FLOATS = 16 };

static __thread struct {
    int configured;
    unsigned row_bytes[MODEL_TILES], rows[MODEL_TILES];
    uint32_t tile[MODEL_TILES][MODEL_ROWS][MODEL_ROW_FLOATS];
} model;

static inline void model_need(int right, const char *fault)
{
    if (!right) {
        fprintf(stderr, "tile model: %s\n", fault);
        abort();
    }
}

static inline void model_need_tile(int tile)
{
    model_need(model.configured, "#UD, the tiles are not configured");
    model_need(model.rows[tile] > 0, "#UD, the tile is not configured");
}

/* LDTILECFG: byte 0 the palette, byte 1 the row to start from, 14 bytes 0, 16 words with the bytes of a row, 16 bytes
 * with the rows. */
static inline void model_configure(const void *memory)
{
    const uint8_t *bytes = memory;
    model_need(bytes[0] <= 1, "#GP, a palette that does not exist");
    memset(&model, 0, sizeof model);
    if (bytes[0] == 0)
        return;
    model_need(bytes[1] < MODEL_ROWS, "#GP, a start row behind the last one");
    for (int i = 2; i < 16; i++)
        model_need(bytes[i] == 0, "#GP, a reserved byte that is not 0");
    for (int tile = 0; tile < 16; tile++) {
        uint16_t row_bytes;
        const unsigned rows = bytes[48 + tile];
        memcpy(&row_bytes, bytes + 16 + 2 * tile, sizeof row_bytes);
        if (tile >= MODEL_TILES) {
            model_need(row_bytes == 0 && rows == 0, "#GP, a tile that does not exist");
            continue;
        }
        model_need(row_bytes <= MODEL_ROW_BYTES, "#GP, a row of more than 64 bytes");
        model_need(rows <= MODEL_ROWS, "#GP, more than 16 rows");
        model_need((row_bytes == 0) == (rows == 0), "#GP, rows without bytes, or bytes without rows");
        model.row_bytes[tile] = row_bytes;
        model.rows[tile] = rows;
    }
    model.configured = 1;
}

static inline void model_release(void)
{
    memset(&model, 0, sizeof model);
}

static inline void model_zero(int tile)
{
    model_need_tile(tile);
    memset(model.tile[tile], 0, sizeof model.tile[tile]);
}

static inline void model_load(int tile, const void *base, int64_t stride)
{
    model_need_tile(tile);
    memset(model.tile[tile], 0, sizeof model.tile[tile]);
    for (unsigned r = 0; r < model.rows[tile]; r++)
        memcpy(model.tile[tile][r], (const char *)base + r * stride, model.row_bytes[tile]);
}

static inline void model_store(int tile, void *base, int64_t stride)
{
    model_need_tile(tile);
    for (unsigned r = 0; r < model.rows[tile]; r++)
        memcpy((char *)base + r * stride, model.tile[tile][r], model.row_bytes[tile]);
}

static inline float model_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A subnormal number becomes a zero of its sign: DAZ for operands, FTZ for results. */
static inline float model_flushed(float value)
{
    return fabsf(value) < FLT_MIN ? copysignf(0, value) : value;
}

/* The sum a * b + c, rounded once to nearest even. FTZ asks whether the result is subnormal if it is rounded to 24 bits
 * without a least exponent. This also holds for sums so close below FLT_MIN that fmaf rounds them up to it. */
static inline float model_fma(float a, float b, float c)
{
    const float sum = fmaf(a, b, c);
    const double exact = (double)a * b + c;
    const double least = FLT_MIN * (1 - 0x1p-25);
    return fabs(exact) < least ? copysignf(0, sum) : model_flushed(sum);
}

/* TDPBF16PS. MXCSR is not asked. */
static inline void model_multiply(int c, int a, int b)
{
    model_need_tile(a);
    model_need_tile(b);
    model_need_tile(c);
    model_need(a != b && a != c && b != c, "#UD, a tile that is two operands");
    model_need(model.row_bytes[a] % 4 == 0 && model.row_bytes[b] % 4 == 0, "#UD, rows that end within an element");
    model_need(model.row_bytes[a] / 4 == model.rows[b], "#UD, a and b differ in the pairs of a sum");
    model_need(model.rows[c] == model.rows[a] && model.row_bytes[c] == model.row_bytes[b],
               "#UD, the sums have another shape than the product");
    for (unsigned m = 0; m < model.rows[c]; m++) {
        float low[MODEL_ROW_FLOATS] = {0}, high[MODEL_ROW_FLOATS] = {0};
        for (unsigned k = 0; k < model.rows[b]; k++) {
            const uint32_t pair = model.tile[a][m][k];
            const float first = model_flushed(model_float(pair << 16));
            const float second = model_flushed(model_float(pair & 0xffff0000));
            for (unsigned n = 0; n < MODEL_ROW_FLOATS; n++) { /* columns behind the last one are zeros */
                const uint32_t other = model.tile[b][k][n];
                low[n] = model_fma(first, model_flushed(model_float(other << 16)), low[n]);
                high[n] = model_fma(second, model_flushed(model_float(other & 0xffff0000)), high[n]);
            }
        }
        for (unsigned n = 0; n < model.row_bytes[c] / 4; n++) {
            const float sum =
                model_fma(1, model_flushed(model_float(model.tile[c][m][n])), model_fma(1, low[n], high[n]));
            memcpy(&model.tile[c][m][n], &sum, sizeof sum);
        }
    }
}

#define TILE_CONFIGURE(config) model_configure(config)
#define TILE_RELEASE() model_release()
#define TILE_ZERO(tile) model_zero(tile)
#define TILE_LOAD(tile, base, stride) model_load(tile, base, stride)
#define TILE_STORE(tile, base, stride) model_store(tile, base, stride)
#define TILE_MULTIPLY(c, a, b) model_multiply(c, a, b)

#endif
