// Shared parts of the simulator: the threads of the running block, and the meetings of lanes of a warp.
#pragma once

#include "fiber.hpp"
#include "simulator.hpp"
#include <vector>

namespace simulator
{
extern unsigned char poison; // the content of memory that nobody has written to

struct Copy {
    unsigned char *shared;
    unsigned char data[16];
    int width;
    unsigned group;
};

// The action once all lanes of a meeting have arrived. It takes each lane's operand (null if a lane takes no part).
using Meeting = void (*)(void *const operands[32]);

struct Thread {
    Fiber fiber;
    uint3 index;
    int number;
    bool done;
    const char *waits_for; // null: it can run
    const char *file;      // of the barrier that it waits at
    int line;
    int barrier; // the number of this barrier in the block; `expected` threads meet there
    int expected;
    bool vote;         // the thread's vote there
    const void *meter; // the mbarrier that it waits for, until the phase of this parity ends
    unsigned parity;
    unsigned mask; // of the lanes that it waits for
    Meeting meeting;
    void *operands;
    std::vector<Copy> copies;
    unsigned groups; // committed so far
    bool unshown;    // copies have arrived that wgmma does not see yet

    Thread *lanes() // of its warp
    {
        return this - number % 32;
    }
};

extern Thread *current;

// Waits until all lanes of `mask` that have not returned are here. The last one of them carries out the meeting.
// `whole`: an instruction for 32 lanes. None of them may have returned.
void meet(const char *name, unsigned mask, bool whole, Meeting meeting, void *operands);

bool is_shared(const void *address, size_t bytes);
uint64_t random_number();
// Number of times that all threads of the block have met at __syncthreads.
extern int barriers_passed;

// mbarriers (engine.cpp): whether a thread's awaited phase has ended. If no thread can continue, one of the requested boxes
// arrives, if there is one.
bool has_ended(const Thread &waiting);
bool bring_box(int schedule);
// Called before a block begins and after it has ended. Returns null, or an error message.
const char *forget_meters();

// Called before a block begins: no wgmma is in flight.
void forget_products();

// Truncation as in tensor cores.
float rounded_toward_zero(double value);
} // namespace simulator
