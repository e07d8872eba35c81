/* Functions of tile_model.h for ctypes, and a program that carries out instructions which its arguments name:
 * HEX, the 64 bytes of a configuration; z0, zero tile 0; m012, multiply tiles 1 and 2 to tile 0; r, release. */
#include "tile_model.h"

void configure(const void *memory)
{
    model_configure(memory);
}

void load(int tile, const void *base, int64_t stride)
{
    model_load(tile, base, stride);
}

void multiply(int c, int a, int b)
{
    model_multiply(c, a, b);
}

void store(int tile, void *base, int64_t stride)
{
    model_store(tile, base, stride);
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        const char *text = arguments[i];
        uint8_t config[64];
        switch (text[0]) {
        case 'z': model_zero(text[1] - '0'); break;
        case 'm': model_multiply(text[1] - '0', text[2] - '0', text[3] - '0'); break;
        case 'r': model_release(); break;
        default:
            for (int k = 0; k < 64; k++)
                config[k] = (uint8_t)strtol((char[]){text[2 * k], text[2 * k + 1], 0}, NULL, 16);
            model_configure(config);
        }
    }
    return 0;
}
