/* Memory that a call takes, of which a large one is kept for the next call.
 *
 * malloc maps blocks of 32 MiB and more anew each time (glibc). The system then fills page after page with zeros, for many
 * threads at once, which takes longer than many a call. So one such block stays with the process: the last that was given
 * back, if it is not larger than what the caller allows. */
#ifndef CONVGRAD_KEPT_MEMORY_H
#define CONVGRAD_KEPT_MEMORY_H

#include <stdint.h>
#include <stdlib.h>

enum { MAPPED_BYTES = 32 << 20 };

typedef union {
    size_t bytes; /* of the memory behind it */
    char line[64];
} memory_header;

extern __attribute__((visibility("hidden"))) memory_header *kept_memory; /* in parallel/shared.c */

static inline memory_header *swap_kept(memory_header *other)
{
    return __atomic_exchange_n(&kept_memory, other, __ATOMIC_ACQ_REL);
}

/* So many bytes, or NULL. */
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

/* Give memory back, or NULL; at most so many bytes are kept. */
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

/* What is kept goes back to the system. */
static inline void release_kept_memory(void)
{
    free(swap_kept(NULL));
}

#endif
