/* Emulation of instructions that this processor lacks, in the kernels of x86_64_v4: on SIGILL there, Bochs continues
 * from the instruction until control leaves the module.
 *
 * At a module's borders no wide register is alive, because the ABI lets every call overwrite all vector registers. Code
 * outside of the module runs natively, and code inside, too, until the next such instruction. This library is loaded
 * before the library of Bochs (LD_PRELOAD), so its functions replace functions of the same name there. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "bochs.h"
#include "memory.h"

enum {
    CPU = 0, /* bochscpu has one */
    CS = 1,
    FS = 4,
    SEGMENTS = 6,
    STACK = 1 << 20,
    FLAGS = 0xcd5, /* carry, parity, adjust, zero, sign, direction, overflow */
};

/* In the frame of a signal: the registers as FXSAVE and XSAVE store them. */
enum { MXCSR = 24, XMM = 160, PRESENT = 512, YMM_HIGH = 576, SSE_AND_AVX = 6 };

static const int GENERAL[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Replacements of Bochs' own functions: the processor, and the reports on instructions, which do nothing here. */

void *_Z23create_corei3_cnl_cpuidP8BX_CPU_C(void *cpu)
{
    void *(*with_pairs_of_bfloat16)(void *) = symbol("_Z28create_sapphire_rapids_cpuidP8BX_CPU_C");
    return with_pairs_of_bfloat16(cpu);
}

void bx_instr_before_execution(unsigned cpu, void *instruction)
{
    (void)cpu, (void)instruction;
}

void bx_instr_after_execution(unsigned cpu, void *instruction)
{
    (void)cpu, (void)instruction;
}

void bx_instr_lin_access(unsigned cpu, uint64_t linear, uint64_t physical, unsigned size, unsigned type,
                         unsigned access)
{
    (void)cpu, (void)linear, (void)physical, (void)size, (void)type, (void)access;
}

void bx_instr_ucnear_branch(unsigned cpu, unsigned kind, uint64_t from, uint64_t to)
{
    (void)kind, (void)from;
    if (to < begin || to >= end) {
        bochs.cpu_set_killbit(cpu);
    }
}

void bx_instr_exception(unsigned cpu, unsigned vector, unsigned error)
{
    (void)error;
    fprintf(stderr, "emulator: exception %u\n", vector);
    fail("an instruction raised it", bochs.cpu_get_pc(cpu));
}

static void start(uint64_t address)
{
    load_bochs();
    bochs.bochscpu_mem_missing_page(page_is_missing);
    bochs.cpu_new(CPU);
    bochs.cpu_set_cr3(CPU, new_table());
    read_maps(address);
    bochs.cpu_set_cr4(CPU, 1 << 5 | 1 << 9 | 1 << 10 | 1 << 18);     /* PAE, FXSAVE, SIMD exceptions, XSAVE */
    bochs.cpu_set_efer(CPU, 1 << 8 | 1 << 10);                       /* long mode */
    bochs.cpu_set_cr0(CPU, 1u << 31 | 1 << 5 | 1 << 4 | 1 << 1 | 1); /* paging, protection; a floating-point unit */
    bochs.cpu_set_xcr0(CPU, 0xe7);                                   /* all registers of AVX-512 */
    for (unsigned segment = 0; segment < SEGMENTS; segment++) {
        bochs.cpu_set_seg(CPU, segment, 1, 8, 0, UINT32_MAX, segment == CS ? 0xa09b : 0xc093); /* code and data */
    }
    bochs.cpu_set_mode(CPU);
}

/* The state of the thread, to Bochs and back. */

static void take(const greg_t *general, const uint8_t *registers)
{
    uint64_t thread, present;
    uint32_t mxcsr;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &thread);
    bochs.cpu_set_seg(CPU, FS, 1, 8, thread, UINT32_MAX, 0xc093);
    for (unsigned k = 0; k < 16; k++) {
        bochs.cpu_set_reg64(CPU, k, general[GENERAL[k]]);
    }
    bochs.cpu_set_sp(CPU, general[REG_RSP]);
    bochs.cpu_set_pc(CPU, general[REG_RIP]);
    bochs.cpu_set_eflags(CPU, (general[REG_EFL] & FLAGS) | 2);
    memcpy(&mxcsr, registers + MXCSR, sizeof mxcsr);
    bochs.cpu_set_mxcsr(CPU, mxcsr);
    memcpy(&present, registers + PRESENT, sizeof present);
    for (unsigned k = 0; k < 16; k++) {
        uint64_t zmm[8] = {0};
        if (present & 2) {
            memcpy(zmm, registers + XMM + 16 * k, 16);
        }
        if (present & 4) {
            memcpy(zmm + 2, registers + YMM_HIGH + 16 * k, 16);
        }
        bochs.cpu_set_zmm(CPU, k, zmm);
    }
}

static void give(greg_t *general, uint8_t *registers)
{
    const uint32_t mxcsr = bochs.cpu_get_mxcsr(CPU);
    uint64_t present, zmm[8];
    for (unsigned k = 0; k < 16; k++) {
        general[GENERAL[k]] = bochs.cpu_get_reg64(CPU, k);
        bochs.cpu_get_zmm(CPU, k, zmm);
        memcpy(registers + XMM + 16 * k, zmm, 16);
        memcpy(registers + YMM_HIGH + 16 * k, zmm + 2, 16);
    }
    general[REG_RIP] = bochs.cpu_get_pc(CPU);
    general[REG_EFL] = (general[REG_EFL] & ~(greg_t)FLAGS) | (bochs.cpu_get_eflags(CPU) & FLAGS);
    memcpy(registers + MXCSR, &mxcsr, sizeof mxcsr);
    memcpy(&present, registers + PRESENT, sizeof present);
    present |= SSE_AND_AVX;
    memcpy(registers + PRESENT, &present, sizeof present);
}

static void on_illegal_instruction(int number, siginfo_t *info, void *context)
{
    greg_t *general = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint8_t *registers = (uint8_t *)((ucontext_t *)context)->uc_mcontext.fpregs;
    const uint64_t address = general[REG_RIP];
    Dl_info module;
    (void)number, (void)info;
    pthread_mutex_lock(&turn);
    if (end == 0 && dladdr((void *)address, &module) != 0 && strstr(module.dli_fname, "_kernels_x86_64_v4") != NULL) {
        start(address);
    }
    if (address < begin || address >= end) {
        fail("an illegal instruction outside the kernels", address);
    }
    take(general, registers);
    bochs.cpu_clear_killbit(CPU);
    while (bochs.cpu_get_pc(CPU) >= begin && bochs.cpu_get_pc(CPU) < end) {
        bochs.cpu_loop(CPU);
    }
    give(general, registers);
    pthread_mutex_unlock(&turn);
}

/* Each thread gets a stack for the handler: emulated code continues on the thread's own stack. */
static void set_stack(void)
{
    const stack_t stack = {.ss_sp = malloc(STACK), .ss_size = STACK};
    if (stack.ss_sp == NULL || syscall(SYS_sigaltstack, &stack, NULL) != 0) {
        fail("no stack", (uint64_t)stack.ss_sp);
    }
}

/* The handler stays, also if other code sets one: Python's faulthandler does. */
int sigaltstack(const stack_t *restrict stack, stack_t *restrict before)
{
    (void)stack;
    if (before != NULL) {
        *before = (stack_t){.ss_flags = SS_DISABLE};
    }
    return 0;
}

struct thread {
    void *(*run)(void *);
    void *argument;
};

static void *run_thread(void *given)
{
    const struct thread thread = *(struct thread *)given;
    free(given);
    set_stack();
    return thread.run(thread.argument);
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, __func__);
    struct thread *thread = malloc(sizeof *thread);
    if (thread == NULL) {
        return EAGAIN;
    }
    *thread = (struct thread){run, argument};
    return create(id, attributes, run_thread, thread);
}

__attribute__((constructor)) static void watch(void)
{
    struct sigaction action = {.sa_sigaction = on_illegal_instruction, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    set_stack();
    sigaction(SIGILL, &action, NULL);
}
