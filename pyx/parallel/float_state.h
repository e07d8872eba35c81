/* The floating-point state in which sums are formed: rounding to nearest, no flushing of subnormal numbers, no traps.
 * Each thread has its own state. A caller may have changed it (fesetround, torch.set_flush_denormal, a library linked
 * with -ffast-math). So each thread enters the standard state at the beginning of its part of a call and restores its
 * own state at the end. */
#ifndef CONVGRAD_FLOAT_STATE_H
#define CONVGRAD_FLOAT_STATE_H

#include <stdint.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define STANDARD_STATE 0x1F80u /* MXCSR: all exceptions masked */
#define STATE_FLAGS 0x003Fu    /* record the exceptions that have occurred; they do not affect results */

static inline uint64_t float_state(void)
{
    return _mm_getcsr();
}

static inline void set_float_state(uint64_t state)
{
    _mm_setcsr((uint32_t)state);
}

#elif defined(__aarch64__)

#define STANDARD_STATE 0u /* FPCR */
#define STATE_FLAGS 0u    /* on AArch64, these flags are in another register */

static inline uint64_t float_state(void)
{
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}

static inline void set_float_state(uint64_t state)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(state) : "memory");
}

#else

#define STANDARD_STATE 0u
#define STATE_FLAGS 0u

static inline uint64_t float_state(void)
{
    return STANDARD_STATE;
}

static inline void set_float_state(uint64_t state)
{
    (void)state;
}

#endif

/* Enters the standard state. Returns the previous state, which leave_floats restores. */
static inline uint64_t enter_floats(void)
{
    const uint64_t before = float_state();
    if ((before & ~(uint64_t)STATE_FLAGS) != STANDARD_STATE)
        set_float_state(STANDARD_STATE);
    __asm__ volatile("" ::: "memory"); /* keeps the compiler from moving sums before this point */
    return before;
}

static inline void leave_floats(uint64_t before)
{
    __asm__ volatile("" ::: "memory"); /* keeps the compiler from moving sums behind this point */
    if ((before & ~(uint64_t)STATE_FLAGS) != STANDARD_STATE)
        set_float_state(before);
}

#endif
