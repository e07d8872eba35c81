// Instructions of a whole warp. A fragment's layout is given by formulas, as in the PTX ISA, with g = lane / 4, t = lane % 4.
#include "scheduler.hpp"

namespace simulator
{
namespace
{
struct Exchange {
    uint64_t mine;
    uint64_t *all;
};

void exchange_all(void *const operands[32])
{
    for (int to = 0; to < 32; ++to)
        if (operands[to])
            for (int from = 0; from < 32; ++from) {
                uint64_t nothing;
                std::memset(&nothing, poison, sizeof nothing);
                const auto *lane = static_cast<const Exchange *>(operands[from]);
                static_cast<Exchange *>(operands[to])->all[from] = lane ? lane->mine : nothing;
            }
}
} // namespace

void exchange(unsigned mask, const char *name, uint64_t mine, uint64_t all[32])
{
    Exchange operands = {mine, all};
    meet(name, mask, false, exchange_all, &operands);
}

float rounded_toward_zero(double value)
{
    const float nearest = float(value);
    return std::fabs(double(nearest)) > std::fabs(value) ? std::nextafter(nearest, 0.0f) : nearest;
}

namespace
{
template <class Register> struct Operands {
    void *d;
    const Register *a, *b;
};

// mma.m16n8k8 and k16 of 16-bit types. Register r of a is row g + 8 (r % 2), columns 2t + 8 (r / 2) and the next;
// register r of b is rows 2t + 8r and the next, column g; d[i] is row g + 8 (i / 2), column 2t + i % 2.
template <int depth, float (*widen)(uint16_t)> void mma_16_bits(void *const operands[32])
{
    double a[16][depth], b[depth][8], sum[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        const auto &own = *static_cast<const Operands<uint32_t> *>(operands[lane]);
        const int g = lane / 4, t = lane % 4;
        for (int r = 0; r < depth / 4; ++r)
            for (int half = 0; half < 2; ++half)
                a[g + 8 * (r % 2)][2 * t + 8 * (r / 2) + half] = widen(uint16_t(own.a[r] >> 16 * half));
        for (int r = 0; r < depth / 8; ++r)
            for (int half = 0; half < 2; ++half)
                b[2 * t + 8 * r + half][g] = widen(uint16_t(own.b[r] >> 16 * half));
        for (int i = 0; i < 4; ++i)
            sum[g + 8 * (i / 2)][2 * t + i % 2] = static_cast<const float *>(own.d)[i];
    }
    for (int row = 0; row < 16; ++row)
        for (int k = 0; k < depth; ++k)
            for (int column = 0; column < 8; ++column)
                sum[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i)
            static_cast<float *>(static_cast<Operands<uint32_t> *>(operands[lane])->d)[i] =
                rounded_toward_zero(sum[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
}

// mma.m8n8k4 and m16n8k4, k8, k16 of float64. a[r] is row g + 8 (r % (rows / 8)), column t + 4 (r / (rows / 8)); b[r] is
// row t + 4r, column g; d[i] is row g + 8 (i / 2), column 2t + i % 2.
template <int rows, int depth> void mma_f64(void *const operands[32])
{
    double a[rows][depth], b[depth][8];
    constexpr int halves = rows / 8;
    for (int lane = 0; lane < 32; ++lane) {
        const auto &own = *static_cast<const Operands<double> *>(operands[lane]);
        for (int r = 0; r < halves * depth / 4; ++r)
            a[lane / 4 + 8 * (r % halves)][lane % 4 + 4 * (r / halves)] = own.a[r];
        for (int r = 0; r < depth / 4; ++r)
            b[lane % 4 + 4 * r][lane / 4] = own.b[r];
    }
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 2 * halves; ++i) {
            double &d = static_cast<double *>(static_cast<Operands<double> *>(operands[lane])->d)[i];
            for (int k = 0; k < depth; ++k)
                d = std::fma(a[lane / 4 + 8 * (i / 2)][k], b[k][2 * (lane % 4) + i % 2], d);
        }
}

struct Rows {
    const void *row;
    uint32_t *r;
};

// ldmatrix: lane 8m + i has the address of row i of matrix m. Register m of a lane is row g, columns 2t and 2t + 1 of
// matrix m, or with .trans rows 2t and 2t + 1, column g.
template <int matrices, bool transposed> void load_matrices(void *const operands[32])
{
    for (int lane = 0; lane < 32; ++lane)
        for (int m = 0; m < matrices; ++m) {
            uint32_t both = 0;
            for (int half = 0; half < 2; ++half) {
                const int near = lane / 4, far = 2 * (lane % 4) + half;
                const int row = transposed ? far : near, column = transposed ? near : far;
                uint16_t element;
                const void *begin = static_cast<const Rows *>(operands[8 * m + row])->row;
                std::memcpy(&element, static_cast<const char *>(begin) + 2 * column, 2);
                both |= uint32_t(element) << 16 * half;
            }
            static_cast<Rows *>(operands[lane])->r[m] = both;
        }
}

template <int matrices, bool transposed> void load(uint32_t *r, const void *row)
{
    if (lane() < 8 * matrices) { // the addresses of the other lanes are ignored
        if (reinterpret_cast<uintptr_t>(row) % 16)
            fail("ldmatrix: address %p is no multiple of 16", row);
        if (!is_shared(row, 16))
            fail("ldmatrix: address %p is not in shared memory", row);
    }
    Rows operands = {row, r};
    meet("ldmatrix", ~0u, true, load_matrices<matrices, transposed>, &operands);
}

template <class Register> void multiply(Meeting mma, void *d, const Register *a, const Register *b)
{
    Operands<Register> operands = {d, a, b};
    meet("mma", ~0u, true, mma, &operands);
}
} // namespace
} // namespace simulator

using namespace simulator;

void sim_mma_m16n8k16_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    multiply(mma_16_bits<16, sim_float_of_bfloat16>, d, a, b);
}

void sim_mma_m16n8k16_f16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    multiply(mma_16_bits<16, sim_float_of_half>, d, a, b);
}

void sim_mma_m16n8k8_bf16(float d[4], const uint32_t a[2], const uint32_t b[1])
{
    multiply(mma_16_bits<8, sim_float_of_bfloat16>, d, a, b);
}

void sim_mma_m16n8k8_f16(float d[4], const uint32_t a[2], const uint32_t b[1])
{
    multiply(mma_16_bits<8, sim_float_of_half>, d, a, b);
}

void sim_mma_m8n8k4_f64(double d[2], double a, double b)
{
    multiply(mma_f64<8, 4>, d, &a, &b);
}

void sim_mma_m16n8k4_f64(double d[4], const double a[2], const double b[1])
{
    multiply(mma_f64<16, 4>, d, a, b);
}

void sim_mma_m16n8k8_f64(double d[4], const double a[4], const double b[2])
{
    multiply(mma_f64<16, 8>, d, a, b);
}

void sim_mma_m16n8k16_f64(double d[4], const double a[8], const double b[4])
{
    multiply(mma_f64<16, 16>, d, a, b);
}

void sim_ldmatrix_x4(uint32_t r[4], const void *row)
{
    load<4, false>(r, row);
}

void sim_ldmatrix_x4_trans(uint32_t r[4], const void *row)
{
    load<4, true>(r, row);
}

void sim_ldmatrix_x2(uint32_t r[2], const void *row)
{
    load<2, false>(r, row);
}

void sim_ldmatrix_x2_trans(uint32_t r[2], const void *row)
{
    load<2, true>(r, row);
}

float sim_float_of_bfloat16(uint16_t bits)
{
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
}

float sim_float_of_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? std::ldexp(1024.0f + float(fraction), exponent - 25) : std::ldexp(float(fraction), -24));
}
