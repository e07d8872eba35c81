// cp.async: the source is read when the copy is requested, so that a bad address is seen there. The target is poison
// from then on, and gets the data when the thread waits for the group. These are the two extremes of hardware. The data
// of a group that nobody waits for never arrive.
#include "scheduler.hpp"

using namespace simulator;

namespace
{
void start(void *shared, const void *global, int width, int bytes)
{
    if (reinterpret_cast<uintptr_t>(shared) % width || reinterpret_cast<uintptr_t>(global) % width)
        fail("cp.async of %d bytes: address %p or %p is no multiple of that", width, shared, global);
    if (!is_shared(shared, size_t(width)))
        fail("cp.async: target %p is not in shared memory", shared);
    if (bytes < 0 || bytes > width)
        fail("cp.async of %d bytes cannot read %d", width, bytes);
    Copy copy = {static_cast<unsigned char *>(shared), {}, width, current->groups};
    for (int i = 0; i < bytes; ++i)
        copy.data[i] = static_cast<const unsigned char *>(global)[i];
    std::memset(shared, poison, size_t(width));
    current->copies.push_back(copy);
}
} // namespace

void sim_cp_async_16(void *shared, const void *global, int bytes)
{
    start(shared, global, 16, bytes);
}

void sim_cp_async_8(void *shared, const void *global, int bytes)
{
    start(shared, global, 8, bytes);
}

void sim_cp_async_4(void *shared, const void *global, int bytes)
{
    start(shared, global, 4, bytes);
}

void sim_cp_async_commit()
{
    ++current->groups;
}

void sim_cp_async_wait(int left)
{
    if (left < 0)
        fail("cp.async.wait_group cannot leave %d groups", left);
    auto &copies = current->copies; // in the order of their groups
    size_t arrived = 0;
    for (; arrived < copies.size() && int64_t(copies[arrived].group) < int64_t(current->groups) - left; ++arrived)
        std::memcpy(copies[arrived].shared, copies[arrived].data, size_t(copies[arrived].width));
    copies.erase(copies.begin(), copies.begin() + int64_t(arrived));
    current->unshown |= arrived > 0;
}
