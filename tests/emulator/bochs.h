/* Bochs, as the package bochscpu has it: a library whose symbols are all public. */
#ifndef CONVGRAD_EMULATOR_BOCHS_H
#define CONVGRAD_EMULATOR_BOCHS_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Its functions: result, name, parameters. A processor's number comes first, and is 0: there is one. */
#define FUNCTIONS(F)                                                                                                   \
    F(void, bochscpu_mem_page_insert, (uint64_t guest, uint8_t *host))                                                 \
    F(void, bochscpu_mem_missing_page, (void (*handler)(uint64_t guest)))                                              \
    F(void, cpu_new, (unsigned))                                                                                       \
    F(void, cpu_loop, (unsigned))                                                                                      \
    F(void, cpu_set_mode, (unsigned))                                                                                  \
    F(void, cpu_set_killbit, (unsigned))                                                                               \
    F(void, cpu_clear_killbit, (unsigned))                                                                             \
    F(void, cpu_set_reg64, (unsigned, unsigned, uint64_t))                                                             \
    F(uint64_t, cpu_get_reg64, (unsigned, unsigned))                                                                   \
    F(void, cpu_set_sp, (unsigned, uint64_t))                                                                          \
    F(void, cpu_set_pc, (unsigned, uint64_t))                                                                          \
    F(uint64_t, cpu_get_pc, (unsigned))                                                                                \
    F(void, cpu_set_eflags, (unsigned, uint32_t))                                                                      \
    F(uint32_t, cpu_get_eflags, (unsigned))                                                                            \
    F(void, cpu_set_mxcsr, (unsigned, uint32_t))                                                                       \
    F(uint32_t, cpu_get_mxcsr, (unsigned))                                                                             \
    F(void, cpu_set_zmm, (unsigned, unsigned, const uint64_t *))                                                       \
    F(void, cpu_get_zmm, (unsigned, unsigned, uint64_t *))                                                             \
    F(void, cpu_set_seg,                                                                                               \
      (unsigned, unsigned, uint32_t present, uint16_t selector, uint64_t base, uint32_t limit, uint16_t))              \
    F(void, cpu_set_cr0, (unsigned, uint32_t))                                                                         \
    F(void, cpu_set_cr3, (unsigned, uint64_t))                                                                         \
    F(void, cpu_set_cr4, (unsigned, uint64_t))                                                                         \
    F(void, cpu_set_efer, (unsigned, uint32_t))                                                                        \
    F(void, cpu_set_xcr0, (unsigned, uint32_t))

static struct {
#define FIELD(result, name, parameters) result(*name) parameters;
    FUNCTIONS(FIELD)
#undef FIELD
} bochs;

static void *library;

static void fail(const char *what, uint64_t where)
{
    fprintf(stderr, "emulator: %s at %#lx\n", what, where);
    abort();
}

static void *symbol(const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "emulator: %s\n", dlerror());
        abort();
    }
    return found;
}

static void load_bochs(void)
{
    library = dlopen(getenv("CONVGRAD_EMULATOR"), RTLD_LAZY);
    if (library == NULL) {
        fprintf(stderr, "emulator: %s\n", dlerror());
        abort();
    }
#define BIND(result, name, parameters) bochs.name = symbol(#name);
    FUNCTIONS(BIND)
#undef BIND
}

#endif
