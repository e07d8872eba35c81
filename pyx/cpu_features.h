/* What __builtin_cpu_supports says of the levels of the x86-64 ABI; the compiler's run-time library also asks whether the
 * operating system saves the registers. F16C, LZCNT and MOVBE also belong to level 3; compilers older than the level's name
 * cannot be asked for them, and every processor with AVX2, FMA and BMI2 has them. */
#ifndef CONVGRAD_CPU_FEATURES_H
#define CONVGRAD_CPU_FEATURES_H

#if defined(__x86_64__)
#include <cpuid.h>
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

/* By the names of setup.py's table. */
#define runs_x86_64_v2() runs_x86_64(2)
#define runs_x86_64_v3() runs_x86_64(3)
#define runs_x86_64_v4() runs_x86_64(4)

/* Whether AVX-512 is computed by halves of 32 bytes, as on Zen 4: AMD's leaf 8000_001A says how wide the data path is, in bit
 * 2 for 256 and in bit 3 for 512. */
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

static inline int runs_aarch64(void)
{
#if defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

#endif
