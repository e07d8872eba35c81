// Runs the blocks of a launch one after another, and the threads of a block in a legal but adverse order. A lane runs
// until it has to wait for others, a warp until none of its lanes can continue. Only then does the next warp start.
#include "scheduler.hpp"
#include "launch.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>
#include <string>

namespace simulator
{
uint3 thread_index, block_index;
dim3 block_size, grid_size;
Thread *current;
unsigned char poison;
int barriers_passed;

namespace
{
constexpr size_t GUARD = 1024;
constexpr unsigned char GUARD_BYTE = 0xa5;

struct Threads { // one after another in memory, and kept for the next launch
    Thread *first = nullptr;
    int count = 0;
    void grow(int wanted)
    {
        if (wanted <= count)
            return;
        delete[] first;
        first = new Thread[count = wanted];
    }
} threads;

const Launch *launch;
void (*kernel_body)(const Launch &);
std::vector<unsigned char> shared_memory;
unsigned char *shared_begin;
std::string message;
bool any_vote[16]; // at each barrier, when it was released last
uint64_t random_state;

std::vector<int> order_of(int count)
{
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    if (launch->schedule == DESCENDING)
        std::reverse(order.begin(), order.end());
    if (launch->schedule == RANDOM)
        for (int i = count - 1; i > 0; --i)
            std::swap(order[i], order[random_number() % (i + 1)]);
    return order;
}

std::string name_of(const uint3 &i)
{
    return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

void thread_entry()
{
    current->fiber.arrived();
    kernel_body(*launch);
    current->done = true;
    current->fiber.pause();
}

unsigned returned(const Thread *lanes)
{
    unsigned bits = 0;
    for (int i = 0; i < 32; ++i)
        bits |= unsigned(lanes[i].done) << i;
    return bits;
}

// Whether all lanes that lane `self` waits for have arrived. They have then met.
bool complete(Thread *lanes, const Thread &self)
{
    const unsigned present = self.mask & ~returned(lanes);
    for (int i = 0; i < 32; ++i)
        if (present >> i & 1 && (!lanes[i].waits_for || lanes[i].meeting != self.meeting || lanes[i].mask != self.mask))
            return false;
    void *operands[32];
    const Meeting meeting = self.meeting;
    for (int i = 0; i < 32; ++i) {
        operands[i] = present >> i & 1 ? lanes[i].operands : nullptr;
        if (operands[i])
            lanes[i].waits_for = nullptr;
    }
    meeting(operands);
    return true;
}

// Stop waiting for a lane that has returned.
void lane_returned(Thread *lanes)
{
    for (int i = 0; i < 32; ++i)
        if (!lanes[i].done && lanes[i].waits_for && lanes[i].meeting)
            complete(lanes, lanes[i]);
}

void resume(Thread &thread)
{
    current = &thread;
    thread_index = thread.index;
    thread.fiber.resume();
    if (thread.done && message.empty())
        lane_returned(thread.lanes());
}

bool run_warp(Thread *lanes)
{
    bool any = false;
    for (bool moved = true; moved && message.empty(); any |= moved) {
        moved = false;
        for (int i : order_of(32)) {
            if (lanes[i].meter && has_ended(lanes[i]))
                lanes[i].waits_for = nullptr, lanes[i].meter = nullptr;
            if (!lanes[i].done && !lanes[i].waits_for && message.empty()) {
                resume(lanes[i]);
                moved = true;
            }
        }
    }
    return any;
}

std::string what_each_does(int count)
{
    std::string text;
    for (int begin = 0, end; begin < count; begin = end) {
        const auto state = [](const Thread &t) {
            std::string what = t.done ? "returned" : "waits at " + std::string(t.waits_for ? t.waits_for : "nothing");
            return !t.done && t.file ? what + " of " + t.file + " line " + std::to_string(t.line) : what;
        };
        const std::string first = state(threads.first[begin]);
        for (end = begin + 1; end < count && state(threads.first[end]) == first;)
            ++end;
        text += "; threads " + std::to_string(begin) + " to " + std::to_string(end - 1) + ": " + first;
    }
    return text;
}

// Whether enough threads have reached a barrier, all at one place of the source.
bool release_barrier(int count, const Thread &first)
{
    std::vector<Thread *> there;
    for (Thread *thread = threads.first; thread < threads.first + count; ++thread)
        if (!thread->done && thread->file && thread->barrier == first.barrier && thread->expected == first.expected
            && thread->line == first.line && !std::strcmp(thread->file, first.file))
            there.push_back(thread);
    if (int(there.size()) != first.expected)
        return false;
    barriers_passed += first.barrier == 0;
    any_vote[first.barrier] = false;
    for (Thread *thread : there) {
        any_vote[thread->barrier] |= thread->vote;
        thread->waits_for = thread->file = nullptr;
    }
    return true;
}

bool release_barriers(int count)
{
    for (int i = 0; i < count; ++i)
        if (!threads.first[i].done && threads.first[i].file && release_barrier(count, threads.first[i]))
            return true;
    return false;
}

void start_threads(int count)
{
    const dim3 size = launch->block;
    forget_products();
    forget_meters();
    barriers_passed = 0;
    for (int i = 0; i < threads.count; ++i) {
        Thread &thread = threads.first[i];
        thread.number = i;
        thread.index = {unsigned(i) % size.x, unsigned(i) / size.x % size.y, unsigned(i) / size.x / size.y};
        thread.done = i >= count; // the lanes that the last warp lacks
        thread.waits_for = thread.file = nullptr;
        thread.meeting = nullptr;
        thread.meter = nullptr;
        thread.copies.clear();
        thread.groups = 0;
        thread.unshown = false;
        if (!thread.done)
            thread.fiber.prepare(thread_entry);
    }
}

void run_block()
{
    const int count = int(block_size.x * block_size.y * block_size.z), warps = (count + 31) / 32;
    threads.grow(warps * 32);
    start_threads(count);
    std::fill(shared_begin, shared_begin + launch->shared, poison);
    std::fill(launch->static_begin, launch->static_end, poison);
    for (bool running = true; running && message.empty();) {
        bool moved = false;
        for (int warp : order_of(warps))
            moved |= message.empty() && run_warp(threads.first + 32 * warp);
        running = !std::all_of(threads.first, threads.first + count, [](const Thread &t) { return t.done; });
        if (running && message.empty() && !moved && !release_barriers(count) && !bring_box(launch->schedule))
            message = "block " + name_of(block_index) + ": some threads wait for ever" + what_each_does(count);
    }
    const char *wrong = forget_meters();
    if (wrong && message.empty())
        message = "block " + name_of(block_index) + ": " + wrong;
}

void allocate_shared()
{
    shared_memory.assign(2 * GUARD + launch->shared, GUARD_BYTE);
    // Aligned to 128 bytes and no more, so that a kernel with a stronger assumption is seen.
    const uintptr_t memory = reinterpret_cast<uintptr_t>(shared_memory.data());
    shared_begin = shared_memory.data() + ((memory + 511) / 256 * 256 + 128 - memory);
}

void guards(void (*visit)(unsigned char *, size_t))
{
    unsigned char *end = shared_begin + launch->shared, *last = shared_memory.data() + shared_memory.size();
    visit(shared_memory.data(), size_t(shared_begin - shared_memory.data()));
    visit(end, size_t(last - end));
}

void check_guard(unsigned char *begin, size_t bytes)
{
    if (message.empty() && !std::all_of(begin, begin + bytes, [](unsigned char c) { return c == GUARD_BYTE; }))
        message = "block " + name_of(block_index) + ": a write outside of the " + std::to_string(launch->shared)
                  + " bytes of dynamic shared memory";
}
} // namespace

unsigned char *dynamic_shared()
{
    return shared_begin;
}

bool is_shared(const void *address, size_t bytes)
{
    const auto *p = static_cast<const unsigned char *>(address);
    return (p >= shared_begin && p + bytes <= shared_begin + launch->shared)
           || (p >= launch->static_begin && p + bytes <= launch->static_end);
}

void fail(const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    message = "block " + name_of(block_index) + ", thread " + name_of(current->index) + ": " + text;
    for (;;) // the scheduler resumes nothing any more
        current->fiber.pause();
}

bool block_barrier(const char *file, int line, bool vote, int barrier, int expected)
{
    current->meeting = nullptr;
    current->file = file;
    current->line = line;
    current->vote = vote;
    current->barrier = barrier;
    current->expected = expected ? expected : int(block_size.x * block_size.y * block_size.z);
    current->waits_for = barrier ? "barrier.sync" : "__syncthreads";
    current->fiber.pause();
    return any_vote[barrier]; // which the next barrier changes only once all threads are there
}

uint64_t random_number()
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 16;
}

void meet(const char *name, unsigned mask, bool whole, Meeting meeting, void *operands)
{
    Thread &self = *current, *lanes = self.lanes();
    if (!(mask >> self.number % 32 & 1))
        fail("%s: lane %d calls it with mask 0x%x, which is without that lane", name, self.number % 32, mask);
    if (whole && returned(lanes))
        fail("%s needs 32 lanes, of which some have returned: mask 0x%x", name, returned(lanes));
    self.mask = mask;
    self.meeting = meeting;
    self.operands = operands;
    self.waits_for = name;
    if (!complete(lanes, self))
        self.fiber.pause();
}

int lane()
{
    return current->number % 32;
}

const char *run(const Launch &asked, void (*body)(const Launch &))
{
    launch = &asked;
    kernel_body = body;
    poison = (unsigned char)(asked.poison);
    message.clear();
    random_state = asked.seed * 0x9e3779b97f4a7c15u | 1;
    block_size = asked.block;
    grid_size = asked.grid;
    const int64_t size[3] = {asked.grid.x, asked.grid.y, asked.grid.z}, blocks = size[0] * size[1] * size[2];
    allocate_shared();
#if defined(__SANITIZE_ADDRESS__)
    guards([](unsigned char *begin, size_t bytes) { __asan_poison_memory_region(begin, bytes); });
#endif
    for (int64_t number : order_of(int(blocks))) {
        block_index = {unsigned(number % size[0]), unsigned(number / size[0] % size[1]),
                       unsigned(number / size[0] / size[1])};
        run_block();
        if (!message.empty())
            break;
    }
#if defined(__SANITIZE_ADDRESS__)
    guards([](unsigned char *begin, size_t bytes) { __asan_unpoison_memory_region(begin, bytes); });
#endif
    guards(check_guard);
    return message.empty() ? nullptr : message.c_str();
}
} // namespace simulator
