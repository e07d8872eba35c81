// A tensor map of the simulator, in the 128 bytes of a driver's map. tensor_maps.py writes it.
#pragma once

#include <cstdint>

namespace simulator
{
struct Map {
    static constexpr uint32_t KNOWN = 0x70616d74;
    uint32_t known;
    uint8_t is_im2col, rank;
    uint8_t steps[5];
    uint64_t address;
    uint64_t strides[4]; // in bytes, of all axes but the first
    uint32_t sizes[5];   // the nearest axis first
    uint16_t box[5];     // or channels and pixels
    int16_t lower[3], upper[3];
};
static_assert(sizeof(Map) <= 128);
} // namespace simulator
