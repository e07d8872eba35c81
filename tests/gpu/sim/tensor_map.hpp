// A tensor map as the simulator has it, in the 128 bytes of the driver's: what tensor_maps.py writes there.
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
