// CUDA's built-in functions that C++ lacks or has under another name.
#pragma once

#include "simulator.hpp"

inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    uint64_t all[32];
    simulator::exchange(mask, "__syncwarp", 0, all);
}

namespace simulator
{
// The value of lane `from` of this lane's segment of `width` lanes, or its own value if there is no such lane.
template <class T> T shuffle(unsigned mask, const char *name, T value, int from, int width)
{
    static_assert(sizeof(T) <= 8);
    uint64_t mine = 0, all[32];
    std::memcpy(&mine, &value, sizeof value);
    exchange(mask, name, mine, all);
    const int begin = lane() / width * width;
    if (from >= begin && from < begin + width)
        std::memcpy(&value, &all[from], sizeof value);
    return value;
}
} // namespace simulator

template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    return simulator::shuffle(mask, "__shfl_sync", value, simulator::lane() / width * width + from % width, width);
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
    return simulator::shuffle(mask, "__shfl_xor_sync", value, simulator::lane() ^ bits, width);
}

template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    return simulator::shuffle(mask, "__shfl_down_sync", value, simulator::lane() + int(distance), width);
}

template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    return simulator::shuffle(mask, "__shfl_up_sync", value, simulator::lane() - int(distance), width);
}

inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    uint64_t all[32];
    simulator::exchange(mask, "__ballot_sync", predicate != 0, all);
    unsigned bits = 0;
    for (int i = 0; i < 32; ++i)
        bits |= unsigned(all[i] == 1) << i;
    return bits;
}

inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

template <class A, class B> constexpr std::common_type_t<A, B> min(A a, B b)
{
    return std::common_type_t<A, B>(b) < std::common_type_t<A, B>(a) ? b : a;
}

template <class A, class B> constexpr std::common_type_t<A, B> max(A a, B b)
{
    return std::common_type_t<A, B>(a) < std::common_type_t<A, B>(b) ? b : a;
}

template <class T> T __ldg(const T *p)
{
    return *p;
}
template <class T> T __ldcs(const T *p)
{
    return *p;
}
template <class T> T __ldcg(const T *p)
{
    return *p;
}
template <class T> void __stcs(T *p, T value)
{
    *p = value;
}
template <class T> void __stcg(T *p, T value)
{
    *p = value;
}

namespace simulator
{
template <class To, class From> To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace simulator

inline unsigned __float_as_uint(float x)
{
    return simulator::same_bits<unsigned>(x);
}
inline int __float_as_int(float x)
{
    return simulator::same_bits<int>(x);
}
inline float __uint_as_float(unsigned x)
{
    return simulator::same_bits<float>(x);
}
inline float __int_as_float(int x)
{
    return simulator::same_bits<float>(x);
}
inline long long __double_as_longlong(double x)
{
    return simulator::same_bits<long long>(x);
}
inline double __longlong_as_double(long long x)
{
    return simulator::same_bits<double>(x);
}

inline unsigned __umulhi(unsigned a, unsigned b)
{
    return unsigned(uint64_t(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline int __clz(int x)
{
    return x ? __builtin_clz(unsigned(x)) : 32;
}
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
