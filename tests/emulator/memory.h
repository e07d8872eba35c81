/* The guest's memory: its virtual addresses are the host's;
 *
 *     guest-physical address = gigabyte k, offset <-> host address = gigabytes[k] + offset */
#ifndef CONVGRAD_EMULATOR_MEMORY_H
#define CONVGRAD_EMULATOR_MEMORY_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bochs.h"

enum {
    PAGE = 4096,
    GIGABYTE_BITS = 30,
    MOST_GIGABYTES = 1 << 10, /* Bochs has 40 bits of physical addresses */
    MOST_TABLES = 64,
    FOR_MAPPINGS = 400, /* gigabytes below the lowest library, where memory will be mapped */
    FOR_HEAP = 20,
};
#define OF_GIGABYTE (((uint64_t)1 << GIGABYTE_BITS) - 1)

static uint64_t gigabytes[MOST_GIGABYTES];
static unsigned gigabyte_count = 1; /* the first has the page tables */
static uint64_t *tables[MOST_TABLES];
static unsigned table_count;
static uint64_t begin, end; /* of the emulated module's code */

static void page_is_missing(uint64_t guest)
{
    const uint64_t gigabyte = guest >> GIGABYTE_BITS;
    if (gigabyte == 0 || gigabyte >= gigabyte_count) {
        fail("no memory", guest);
    }
    guest &= -(uint64_t)PAGE;
    bochs.bochscpu_mem_page_insert(guest, (uint8_t *)(gigabytes[gigabyte] + (guest & OF_GIGABYTE)));
}

/* Table k lies in page k + 1. */
static uint64_t new_table(void)
{
    if (table_count == MOST_TABLES) {
        fail("too many page tables", table_count);
    }
    uint64_t *table = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        fail("no memory for page tables", table_count);
    }
    tables[table_count] = table;
    bochs.bochscpu_mem_page_insert((uint64_t)++table_count * PAGE, (uint8_t *)table);
    return (uint64_t)table_count * PAGE;
}

static void map_gigabyte(uint64_t host)
{
    enum { PRESENT_WRITABLE = 7, ACCESSED_DIRTY_LARGE = 0xe0 };
    host &= ~OF_GIGABYTE;
    for (unsigned k = 1; k < gigabyte_count; k++) {
        if (gigabytes[k] == host) {
            return;
        }
    }
    if (gigabyte_count == MOST_GIGABYTES) {
        fail("too much memory", host);
    }
    uint64_t *top = tables[0] + (host >> 39 & 511);
    if (*top == 0) {
        *top = new_table() | PRESENT_WRITABLE;
    }
    gigabytes[gigabyte_count] = host;
    tables[*top / PAGE - 1][host >> GIGABYTE_BITS & 511] =
        (uint64_t)gigabyte_count++ << GIGABYTE_BITS | PRESENT_WRITABLE | ACCESSED_DIRTY_LARGE;
}

/* All that is mapped, and that may be later: above the heap, below the libraries. Finds the mapping of an address. */
static void read_maps(uint64_t address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    uint64_t from, to, lowest = 0, heap = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx", &from, &to) != 2 || from >> 47 != 0) {
            continue;
        }
        for (uint64_t host = from & ~OF_GIGABYTE; host < to; host += OF_GIGABYTE + 1) {
            map_gigabyte(host);
        }
        if (strstr(line, ".so") != NULL && lowest == 0) {
            lowest = from;
        }
        if (strstr(line, "[heap]") != NULL) {
            heap = to;
        }
        if (from <= address && address < to) {
            begin = from, end = to;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    for (uint64_t k = 1; k <= FOR_MAPPINGS; k++) {
        map_gigabyte(lowest - (k << GIGABYTE_BITS));
    }
    for (uint64_t k = 1; k <= FOR_HEAP && heap != 0; k++) {
        map_gigabyte(heap + (k << GIGABYTE_BITS));
    }
}

#endif
