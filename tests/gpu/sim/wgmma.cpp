// wgmma.mma_async: products of a warpgroup. Each warp forms its 16 rows. Operands are read when a product is requested
// and again when it is waited for, and must not have changed: hardware reads them at some time in between. The sums are
// poison until then. Data of cp.async count only after their thread has made them visible by a fence.
#include "scheduler.hpp"
#include <map>

namespace simulator
{
namespace
{
struct Operands {
    float *sums;
    int columns;
    bool rows_by_depth, columns_by_depth;
    int leading;
    const unsigned char *rows, *across;
    float (*widen)(uint16_t);
};

struct Product {
    Operands of[32];
    std::vector<uint16_t> read;
    unsigned group;
};

struct Warp {
    std::vector<Product> products; // in the order of their groups
    std::map<float *, std::vector<float>> sums;
    unsigned groups = 0;
    bool fenced = false;
};

std::map<const Thread *, Warp> warps; // by their first lanes

Warp &own_warp()
{
    return warps[current->lanes()];
}

// The element of row r and depth k of an operand in atoms of 1024 bytes with the 128-byte swizzle.
uint16_t element_of(const unsigned char *base, bool by_depth, const Operands &of, int r, int k)
{
    const int offset =
        by_depth ? r / 64 * of.leading + k / 8 * 1024 + k % 8 * 128 + r % 64 * 2 : r / 8 * 1024 + r % 8 * 128 + k * 2;
    const uintptr_t plain = reinterpret_cast<uintptr_t>(base) + uintptr_t(offset);
    const auto *address = reinterpret_cast<const unsigned char *>(plain ^ (plain >> 7 & 7) << 4);
    if (!is_shared(address, 2))
        fail("wgmma: operand %p is not in shared memory", static_cast<const void *>(address));
    uint16_t element;
    std::memcpy(&element, address, 2);
    return element;
}

// The 16 rows of this warp, and all columns, 16 depths each.
std::vector<uint16_t> operands_of(const Operands &of)
{
    std::vector<uint16_t> all;
    const int first = current->number / 32 % 4 * 16;
    for (int r = 0; r < 16 + of.columns; ++r)
        for (int k = 0; k < 16; ++k)
            all.push_back(r < 16 ? element_of(of.rows, of.rows_by_depth, of, first + r, k)
                                 : element_of(of.across, of.columns_by_depth, of, r - 16, k));
    return all;
}

bool is_aligned(bool by_depth, const unsigned char *base)
{
    const auto address = reinterpret_cast<uintptr_t>(base);
    return by_depth ? address % 1024 == 0 : address % 1024 < 128 && address % 32 == 0;
}

void start(void *const operands[32])
{
    Warp &warp = own_warp();
    Product product = {{}, {}, warp.groups};
    for (int lane = 0; lane < 32; ++lane)
        product.of[lane] = *static_cast<const Operands *>(operands[lane]);
    const Operands &first = product.of[0];
    for (const Operands &other : product.of)
        if (other.rows != first.rows || other.across != first.across || other.columns != first.columns)
            fail("wgmma: the lanes of a warp have different operands");
    if (!is_aligned(first.rows_by_depth, first.rows) || !is_aligned(first.columns_by_depth, first.across))
        fail("wgmma: an operand does not begin where its swizzle does");
    if (!warp.fenced)
        fail("wgmma: there was no wgmma.fence before");
    const Thread *threads = current - current->number;
    for (int i = 0; i < int(block_size.x * block_size.y * block_size.z); ++i)
        if (threads[i].unshown)
            fail("wgmma: thread %d has copies that no fence.proxy.async has made visible", i);
    product.read = operands_of(first);
    const auto value = [&](int r, int k) { return double(first.widen(product.read[size_t(16 * r + k)])); };
    for (int lane = 0; lane < 32; ++lane) {
        float *const own = product.of[lane].sums;
        const size_t count = size_t(first.columns) / 2;
        auto &sums = warp.sums[own];
        if (sums.empty())
            sums.assign(own, own + count);
        std::memset(own, poison, count * sizeof(float));
        for (size_t i = 0; i < count; ++i) {
            const int row = lane / 4 + 8 * (int(i) / 2 % 2), column = 8 * (int(i) / 4) + 2 * (lane % 4) + int(i) % 2;
            double sum = sums[i];
            for (int k = 0; k < 16; ++k)
                sum += value(row, k) * value(16 + column, k);
            sums[i] = rounded_toward_zero(sum);
        }
    }
    warp.products.push_back(product);
}

struct Wait {
    int left;
};

void wait(void *const operands[32])
{
    Warp &warp = own_warp();
    const int left = static_cast<const Wait *>(operands[0])->left;
    auto &products = warp.products;
    size_t formed = 0;
    for (; formed < products.size() && int64_t(products[formed].group) < int64_t(warp.groups) - left; ++formed)
        if (operands_of(products[formed].of[0]) != products[formed].read)
            fail("wgmma: an operand has changed before the product was waited for");
    products.erase(products.begin(), products.begin() + int64_t(formed));
    for (auto sums = warp.sums.begin(); sums != warp.sums.end();) {
        bool is_pending = false;
        for (const Product &product : products)
            for (const Operands &of : product.of)
                is_pending |= of.sums == sums->first;
        if (is_pending) {
            ++sums;
            continue;
        }
        std::copy(sums->second.begin(), sums->second.end(), sums->first);
        sums = warp.sums.erase(sums);
    }
    warp.fenced = left > 0 && warp.fenced;
}

void fence(void *const *)
{
    own_warp().fenced = true;
}

void commit(void *const *)
{
    ++own_warp().groups;
}

void together(const char *name, Meeting meeting, void *operands)
{
    meet(name, ~0u, true, meeting, operands);
}

void multiply(const Operands &operands)
{
    Operands own = operands;
    together("wgmma", start, &own);
}
} // namespace

void forget_products()
{
    warps.clear();
}
} // namespace simulator

using namespace simulator;

void sim_wgmma_m64k16_bf16(float *sums, int columns, bool rows_by_depth, bool columns_by_depth, int leading,
                           const void *rows, const void *across)
{
    multiply({sums, columns, rows_by_depth, columns_by_depth, leading, static_cast<const unsigned char *>(rows),
              static_cast<const unsigned char *>(across), sim_float_of_bfloat16});
}

void sim_wgmma_m64k16_f16(float *sums, int columns, bool rows_by_depth, bool columns_by_depth, int leading,
                          const void *rows, const void *across)
{
    multiply({sums, columns, rows_by_depth, columns_by_depth, leading, static_cast<const unsigned char *>(rows),
              static_cast<const unsigned char *>(across), sim_float_of_half});
}

void sim_wgmma_fence()
{
    int nothing = 0;
    together("wgmma.fence", fence, &nothing);
}

void sim_wgmma_commit()
{
    int nothing = 0;
    together("wgmma.commit_group", commit, &nothing);
}

void sim_wgmma_wait(int left)
{
    Wait operands = {left};
    together("wgmma.wait_group", wait, &operands);
}

void sim_fence_proxy_async()
{
    current->unshown = false;
}
