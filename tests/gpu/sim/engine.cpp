// mbarriers, and the tensor copies whose bytes they count. The source is read when the copy is requested, so that a bad
// address is seen there. The target is poison from then on, and gets the data only when no thread can continue without
// them: as late as possible, one box after another in the order of the launch.
#include "launch.hpp"
#include "scheduler.hpp"
#include "tensor_map.hpp"

#include <map>

namespace simulator
{
namespace
{
struct Meter {
    int arrivals, missing; // of a phase, and of the current one
    int64_t bytes;         // that the current phase waits for
    unsigned phases;       // that have ended
    const Thread *maker;
    bool fenced;
    int made; // the number of barriers passed before

    void end_phase()
    {
        if (missing == 0 && bytes == 0) {
            ++phases;
            missing = arrivals;
        }
    }
};

struct Box {
    unsigned char *shared;
    std::vector<unsigned char> data;
    Meter *meter;
};

std::map<const void *, Meter> meters;
std::vector<Box> boxes; // in the order in which they were asked for

Meter &known(const void *address, bool by_engine = false)
{
    const auto found = meters.find(address);
    if (found == meters.end())
        fail("mbarrier: none was made at %p", address);
    Meter &meter = found->second;
    if (meter.maker != current && meter.made == barriers_passed)
        fail("mbarrier: the block has not met since thread %d made it", meter.maker->number);
    if ((by_engine || meter.maker != current) && !meter.fenced)
        fail("mbarrier: no fence.mbarrier_init has shown what thread %d made", meter.maker->number);
    return meter;
}

void arrive(Meter &meter)
{
    if (meter.missing == 0)
        fail("mbarrier: more than %d arrivals in a phase", meter.arrivals);
    --meter.missing;
    meter.end_phase();
}

const Map &map_at(const void *address)
{
    const Map &map = *static_cast<const Map *>(address);
    if (map.known != Map::KNOWN)
        fail("tensor copy: there is no tensor map");
    return map;
}

// One row of a box: 128 bytes of the first axis, or fewer, with zeros for elements outside of the tensor.
void read_row(unsigned char *row, const Map &map, int bytes, const int64_t at[5])
{
    int64_t offset = 0;
    bool inside = true;
    for (int i = 1; i < map.rank; ++i) {
        inside = inside && at[i] >= 0 && at[i] < int64_t(map.sizes[i]);
        offset += at[i] * int64_t(map.strides[i - 1]);
    }
    std::memset(row, 0, size_t(bytes));
    for (int i = 0; inside && i < bytes / 2; ++i)
        if (at[0] + i >= 0 && at[0] + i < int64_t(map.sizes[0]))
            std::memcpy(row + 2 * i, reinterpret_cast<const unsigned char *>(map.address) + offset + 2 * (at[0] + i),
                        2);
}

void start(void *shared, Meter &meter, const std::vector<unsigned char> &rows)
{
    auto *to = static_cast<unsigned char *>(shared);
    if (!is_shared(shared, rows.size()))
        fail("tensor copy: target %p is not in shared memory", shared);
    if (reinterpret_cast<uintptr_t>(shared) % 1024)
        fail("tensor copy: %p is not where the swizzle begins", shared);
    Box box = {to, std::vector<unsigned char>(rows.size()), &meter};
    for (size_t chunk = 0; chunk < rows.size() / 16; ++chunk)
        std::memcpy(&box.data[16 * (chunk ^ chunk / 8 % 8)], &rows[16 * chunk], 16);
    std::memset(to, poison, rows.size());
    boxes.push_back(box);
}
} // namespace

bool has_ended(const Thread &waiting)
{
    return meters.at(waiting.meter).phases % 2 != waiting.parity;
}

bool bring_box(int schedule)
{
    if (boxes.empty())
        return false;
    const size_t which = schedule == ASCENDING    ? 0
                         : schedule == DESCENDING ? boxes.size() - 1
                                                  : random_number() % boxes.size();
    const Box box = boxes[which];
    boxes.erase(boxes.begin() + int64_t(which));
    std::memcpy(box.shared, box.data.data(), box.data.size());
    box.meter->bytes -= int64_t(box.data.size());
    box.meter->end_phase();
    return true;
}

const char *forget_meters()
{
    const char *wrong = boxes.empty() ? nullptr : "it has ended while boxes were on their way";
    boxes.clear();
    meters.clear();
    return wrong;
}
} // namespace simulator

using namespace simulator;

bool sim_barrier_or(int barrier, int threads, bool vote)
{
    return block_barrier(__FILE__, __LINE__, vote, barrier, threads);
}

void sim_mbarrier_init(void *meter, int arrivals)
{
    if (!is_shared(meter, 8) || reinterpret_cast<uintptr_t>(meter) % 8)
        fail("mbarrier: %p is no place in shared memory for one", meter);
    meters[meter] = {arrivals, arrivals, 0, 0, current, false, barriers_passed};
}

void sim_fence_mbarrier_init()
{
    for (auto &meter : meters)
        meter.second.fenced |= meter.second.maker == current;
}

void sim_mbarrier_arrive(void *meter)
{
    arrive(known(meter));
}

void sim_mbarrier_arrive_expect_tx(void *meter, int bytes)
{
    Meter &found = known(meter);
    found.bytes += bytes;
    arrive(found);
}

void sim_mbarrier_wait(void *meter, unsigned parity)
{
    known(meter);
    current->meter = meter;
    current->parity = parity;
    if (has_ended(*current)) {
        current->meter = nullptr;
        return;
    }
    current->meeting = nullptr;
    current->waits_for = "mbarrier.try_wait";
    current->fiber.pause();
}

void sim_tensor_copy(void *shared, const void *map, void *meter, const int at[5])
{
    const Map &of = map_at(map);
    if (of.is_im2col || of.rank != 5)
        fail("tensor copy: the map is not a tiled one of rank 5");
    const int bytes = 2 * int(of.box[0]);
    int64_t place[5] = {at[0], at[1], at[2], at[3], at[4]};
    std::vector<unsigned char> rows;
    for (uint32_t i4 = 0; i4 < of.box[4]; ++i4)
        for (uint32_t i3 = 0; i3 < of.box[3]; ++i3)
            for (uint32_t i2 = 0; i2 < of.box[2]; ++i2)
                for (uint32_t i1 = 0; i1 < of.box[1]; ++i1) {
                    const int64_t here[5] = {place[0], place[1] + i1, place[2] + i2, place[3] + i3, place[4] + i4};
                    rows.resize(rows.size() + size_t(bytes));
                    read_row(&rows[rows.size() - size_t(bytes)], of, bytes, here);
                }
    start(shared, known(meter, true), rows);
}

void sim_tensor_copy_im2col(void *shared, const void *map, void *meter, int axes, int channel, const int place[3],
                            int image, const int offset[3])
{
    const Map &of = map_at(map);
    if (!of.is_im2col || of.rank != axes + 2)
        fail("tensor copy: the map is not an im2col one of rank %d", axes + 2);
    int64_t at[5] = {channel}, first[5] = {0}, last[5] = {0}, further[5] = {0};
    for (int i = 1; i <= axes; ++i) { // the last spatial axis is the nearest
        at[i] = place[3 - i];
        first[i] = of.lower[i - 1];
        last[i] = int64_t(of.sizes[i]) - 1 + of.upper[i - 1];
        further[i] = offset[3 - i];
        if (at[i] < first[i] || at[i] > last[i])
            fail("tensor copy: it begins at %d on an axis, outside of the box of the map", int(at[i]));
        if (further[i] < 0 || further[i] >= 1 << (axes == 1 ? 16 : axes == 2 ? 8 : 5))
            fail("tensor copy: the offset %d is out of range", int(further[i]));
    }
    at[axes + 1] = image;
    const int bytes = 2 * int(of.box[0]);
    std::vector<unsigned char> rows(size_t(bytes) * of.box[1]);
    for (uint32_t pixel = 0; pixel < of.box[1]; ++pixel) {
        int64_t here[5];
        for (int i = 0; i < 5; ++i)
            here[i] = at[i] + further[i];
        read_row(&rows[pixel * size_t(bytes)], of, bytes, here);
        for (int i = 1; i <= axes + 1; ++i) {
            at[i] += i <= axes ? of.steps[i] : 1;
            if (i == axes + 1 || at[i] <= last[i])
                break;
            at[i] = first[i];
        }
    }
    start(shared, known(meter, true), rows);
}
