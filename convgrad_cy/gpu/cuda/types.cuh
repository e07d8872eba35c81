/* Storage types, the types in which they are computed, and the conversions between them.

   STORAGE, where it is defined, is f16, bf16, float, double or int: `storage` is then that type and `compute` the one
   of its sums. Compute types are float, double and unsigned: 32-bit integers wrap, which is defined for unsigned ones
   only. */
#ifndef CONVGRAD_TYPES_CUH
#define CONVGRAD_TYPES_CUH

/* Shared memory whose size is given at launch. */
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#endif

struct f16 {
    unsigned short bits;
};
struct bf16 {
    unsigned short bits;
};

template <typename Storage> struct compute_of {
    typedef float type;
};
template <> struct compute_of<double> {
    typedef double type;
};
template <> struct compute_of<int> {
    typedef unsigned type;
};

#ifdef STORAGE
typedef STORAGE storage;
typedef compute_of<storage>::type compute;
#endif

__device__ inline float float_of_bits(unsigned bits)
{
    union {
        unsigned from;
        float to;
    } both = {bits};
    return both.to;
}

__device__ inline unsigned bits_of_float(float value)
{
    union {
        float from;
        unsigned to;
    } both = {value};
    return both.to;
}

/* The processor converts 16-bit types in one instruction if it has one. Otherwise integer arithmetic gives the same
   values, except that a NaN may keep another part of its payload. */

/* ---- widen: exact ---- */

__device__ inline float widen(f16 value)
{
#ifdef __CUDA_ARCH__
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
#else
    const unsigned sign = (value.bits & 0x8000u) << 16, magnitude = value.bits & 0x7fffu;
    if (magnitude < 0x400u) { /* subnormal in f16, normal in float: times 2^-24 */
        const float small = float(magnitude) * 5.9604644775390625e-8f;
        return float_of_bits(bits_of_float(small) | sign);
    }
    const unsigned rebias =
        magnitude < 0x7c00u ? 112u << 23 : 224u << 23; /* infinity and NaN keep the largest exponent */
    return float_of_bits(((magnitude << 13) + rebias) | sign);
#endif
}

__device__ inline float widen(bf16 value)
{
    return float_of_bits(unsigned(value.bits) << 16);
}

__device__ inline float widen(float value)
{
    return value;
}

__device__ inline double widen(double value)
{
    return value;
}

__device__ inline unsigned widen(int value)
{
    return unsigned(value);
}

/* The first or the second of two in a word. */
__device__ inline float widen_half(bf16, unsigned word, bool second)
{
    return float_of_bits(second ? word & 0xffff0000u : word << 16);
}

__device__ inline float widen_half(f16, unsigned word, bool second)
{
    const f16 half = {(unsigned short)(second ? word >> 16 : word)};
    return widen(half);
}

/* ---- narrow: to nearest, ties to even ---- */

__device__ inline unsigned short narrow_to_f16(float value)
{
#ifdef __CUDA_ARCH__
    unsigned short bits_of_f16;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits_of_f16) : "f"(value));
    return bits_of_f16;
#else
    const unsigned bits = bits_of_float(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) /* NaN */
        return (unsigned short)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and more round to infinity */
        return (unsigned short)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the nearest multiple of 2^-24 in the last bits */
        const float shifted = float_of_bits(magnitude) + 0.5f;
        return (unsigned short)(sign | (bits_of_float(shifted) - 0x3f000000u));
    }
    const unsigned odd = (magnitude >> 13) & 1u;
    return (unsigned short)(sign | ((magnitude - (112u << 23) + 0xfffu + odd) >> 13));
#endif
}

__device__ inline unsigned short narrow_to_bf16(float value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned short bits_of_bf16;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits_of_bf16) : "f"(value));
    return bits_of_bf16;
#else
    const unsigned bits = bits_of_float(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* NaN must not round to infinity */
        return (unsigned short)((bits >> 16) | 0x40u);
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

/* The first argument only selects the type: narrow(storage(), sum). */
__device__ inline f16 narrow(f16, float value)
{
    f16 narrowed = {narrow_to_f16(value)};
    return narrowed;
}

__device__ inline bf16 narrow(bf16, float value)
{
    bf16 narrowed = {narrow_to_bf16(value)};
    return narrowed;
}

__device__ inline float narrow(float, float value)
{
    return value;
}

__device__ inline double narrow(double, double value)
{
    return value;
}

__device__ inline int narrow(int, unsigned value)
{
    return int(value);
}

/* ---- a * b + c, rounded once ---- */

__device__ inline float multiply_add(float a, float b, float c)
{
    return fmaf(a, b, c);
}

__device__ inline double multiply_add(double a, double b, double c)
{
    return fma(a, b, c);
}

__device__ inline unsigned multiply_add(unsigned a, unsigned b, unsigned c)
{
    return a * b + c;
}

#endif
