/* Scratch memory of a call. One large block is kept for the next call.
 *
 * glibc's malloc maps a block of 32 MiB or more anew each time. The system then zeroes it page by page while many
 * threads wait, and this can take longer than the call itself. So the process keeps the last large block that was given
 * back, unless it exceeds the caller's limit. */
#ifndef CONVGRAD_KEPT_MEMORY_H
#define CONVGRAD_KEPT_MEMORY_H

#include <stdint.h>
#include <stdlib.h>

enum { MAPPED_BYTES = 32 << 20 };

typedef union {
    size_t bytes; /* of the memory behind the header */
    char line[64];
} memory_header;

extern __attribute__((visibility("hidden"))) memory_header *kept_memory; /* in parallel/shared.c */

static inline memory_header *swap_kept(memory_header *other)
{
    return __atomic_exchange_n(&kept_memory, other, __ATOMIC_ACQ_REL);
}

/* Returns memory of `bytes` bytes, or NULL. */
static inline void *take_memory(size_t bytes)
{
    memory_header *header = bytes < MAPPED_BYTES ? NULL : swap_kept(NULL);
    if (header != NULL && header->bytes < bytes) {
        free(header);
        header = NULL;
    }
    if (header == NULL) {
        header = (memory_header *)malloc(sizeof(memory_header) + bytes);
        if (header == NULL)
            return NULL;
        header->bytes = bytes;
    }
    return header + 1;
}

/* Gives memory back; NULL is allowed. A block of more than `most` bytes is freed, not kept. */
static inline void give_memory(void *memory, size_t most)
{
    memory_header *header;
    if (memory == NULL)
        return;
    header = (memory_header *)memory - 1;
    if (header->bytes >= MAPPED_BYTES && header->bytes <= most)
        header = swap_kept(header);
    free(header);
}

/* Frees the kept block. */
static inline void release_kept_memory(void)
{
    free(swap_kept(NULL));
}

#endif
