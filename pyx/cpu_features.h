/* Support of the levels of the x86-64 ABI, from __builtin_cpu_supports, which also checks that the operating system
 * saves the registers. Level 3 also contains F16C, LZCNT and MOVBE. Compilers older than the levels' names cannot query
 * these three, but every processor with AVX2, FMA and BMI2 has them. */
#ifndef CONVGRAD_CPU_FEATURES_H
#define CONVGRAD_CPU_FEATURES_H

#if defined(__x86_64__)
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

static inline int runs_x86_64(int level)
{
#if defined(__x86_64__)
    const int v2 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1")
                   && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const int v3 = v2 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2")
                   && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                   && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
                   && __builtin_cpu_supports("avx512vl");
    return level == 2 ? v2 : level == 3 ? v3 : level == 4 ? v4 : 0;
#else
    (void)level;
    return 0;
#endif
}

/* The names in setup.py's table of instruction sets. */
#define runs_x86_64_v2() runs_x86_64(2)
#define runs_x86_64_v3() runs_x86_64(3)
#define runs_x86_64_v4() runs_x86_64(4)

/* Whether the processor executes AVX-512 as two halves of 32 bytes, as Zen 4 does. AMD's CPUID leaf 8000_001A reports
 * the width of the data path: bit 2 for 256 bits, bit 3 for 512. */
static inline int splits_vectors(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b, c, d;
    const unsigned wide = 1u << 2, widest = 1u << 3;
    return __builtin_cpu_is("amd") && __get_cpuid(0x8000001a, &a, &b, &c, &d) && (a & wide) && !(a & widest);
#else
    return 0;
#endif
}

/* Instructions that multiply 16-bit types without widening them, one bit each. */
enum { AMX_BF16 = 1, AMX_FP16 = 2, AVX512_FP16 = 4 };

/* Units of a machine whose CPUID leaf 7 has edx in subleaf 0 and eax in subleaf 1. `saved` is XCR0, the registers that
 * the operating system saves: bits 5 to 7 for AVX-512, bits 17 and 18 for the tiles of AMX. Programs can use only
 * these. */
static inline int matrix_units_of(unsigned edx, unsigned eax, unsigned long long saved)
{
    const unsigned long long vectors = 0xe6, tiles = 0x60000;
    const int has_tiles = (saved & tiles) == tiles && (edx & 1u << 24);
    return (has_tiles && (edx & 1u << 22) ? AMX_BF16 : 0) | (has_tiles && (eax & 1u << 21) ? AMX_FP16 : 0)
           | ((saved & vectors) == vectors && (edx & 1u << 23) ? AVX512_FP16 : 0);
}

static inline int matrix_units(void)
{
#if defined(__x86_64__)
    const unsigned saves_registers = 1u << 27;
    unsigned a, b, c, d, edx, eax = 0, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & saves_registers) || !__get_cpuid_count(7, 0, &a, &b, &c, &edx))
        return 0;
    if (a >= 1) /* the last subleaf of leaf 7 */
        __get_cpuid_count(7, 1, &eax, &b, &c, &d);
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return matrix_units_of(edx, eax, (unsigned long long)high << 32 | low);
#else
    return 0;
#endif
}

/* Whether pyx/tile/matrix.c is compiled: the assembler must know the instructions of AMX. Only Linux is asked for its
 * registers here. CONVGRAD_TILE_MODEL replaces the instructions with a model of them. */
#if defined(CONVGRAD_TILE_MODEL)                                                                                       \
    || (defined(__x86_64__) && defined(__linux__)                                                                      \
        && (defined(__clang__) ? __clang_major__ >= 12 : defined(__GNUC__) && __GNUC__ >= 11))
#define HAS_MATRICES
#endif

/* Whether this process may multiply bfloat16 with the tile registers of AMX. Linux saves these registers, of 8 KiB, only
 * for a process that has asked for them. The answer holds for all its threads, also those that exist. */
static inline int allows_matrices(void)
{
#if defined(CONVGRAD_TILE_MODEL)
    return 1;
#elif defined(HAS_MATRICES)
    enum { ASK_WHICH = 0x1022, ASK_FOR = 0x1023, TILE_DATA = 18 }; /* ARCH_GET_XCOMP_PERM, ARCH_REQ_XCOMP_PERM */
    unsigned long granted = 0;
    if (!runs_x86_64(4) || !(matrix_units() & AMX_BF16))
        return 0;
    syscall(SYS_arch_prctl, ASK_FOR, TILE_DATA);
    return syscall(SYS_arch_prctl, ASK_WHICH, &granted) == 0 && (granted >> TILE_DATA & 1);
#else
    return 0;
#endif
}

static inline int runs_aarch64(void)
{
#if defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

/* Whether an Arm processor has the instructions of armv8.6-a for bfloat16. */
static inline int has_bf16(void)
{
#if defined(__aarch64__) && defined(__linux__)
    const unsigned long bf16 = 1ul << 14; /* HWCAP2_BF16, which older headers lack */
    return (getauxval(AT_HWCAP2) & bf16) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
    int found = 0;
    size_t bytes = sizeof found;
    return sysctlbyname("hw.optional.arm.FEAT_BF16", &found, &bytes, 0, 0) == 0 && found;
#else
    return 0;
#endif
}

#endif
