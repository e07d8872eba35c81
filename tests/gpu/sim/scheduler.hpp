// What the parts of the simulator share: the threads of the block that runs, and how lanes of a warp meet.
#pragma once

#include "fiber.hpp"
#include "simulator.hpp"
#include <vector>

namespace simulator
{
extern unsigned char poison; // what memory holds that nobody has written to

struct Copy {
    unsigned char *shared;
    unsigned char data[16];
    int width;
    unsigned group;
};

// What is done once all lanes of a meeting are there: with what each of them brought (null where a lane takes no part).
using Meeting = void (*)(void *const operands[32]);

struct Thread {
    Fiber fiber;
    uint3 index;
    int number;
    bool done;
    const char *waits_for; // null: it can run
    const char *file;      // of the barrier that it waits at
    int line;
    int barrier; // which of the block's it is, for so many threads
    int expected;
    bool vote;         // that it brought there
    const void *meter; // the mbarrier of which it waits for the phase of this parity
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

// Waits until all lanes of `mask` that have not returned are here, of which the last one carries out the meeting.
// `whole`: an instruction for 32 lanes, none of which may have returned.
void meet(const char *name, unsigned mask, bool whole, Meeting meeting, void *operands);

bool is_shared(const void *address, size_t bytes);
uint64_t random_number();
// How often all threads of the block have met at __syncthreads.
extern int barriers_passed;

// mbarriers (engine.cpp): whether the phase has ended that a thread waits for, and, when no thread can go on, the arrival of
// one of the boxes that are on their way, if there is one.
bool has_ended(const Thread &waiting);
bool bring_box(int schedule);
// Before a block begins and after it has ended; what is wrong then.
const char *forget_meters();

// Before a block begins: no wgmma is on its way.
void forget_products();

// As tensor cores truncate.
float rounded_toward_zero(double value);
} // namespace simulator
