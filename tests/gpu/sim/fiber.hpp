// Stacks that take turns: a thread of the simulated block is a fiber, and the scheduler runs on the stack that resumed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

#if defined(__x86_64__)
extern "C" void simulator_switch_stacks(void **save, void *load);
#else
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace simulator
{
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t STACK_BYTES = size_t(1) << 19;
#else
constexpr size_t STACK_BYTES = size_t(1) << 18;
#endif

class Fiber
{
  public:
    Fiber()
    {
        void *memory = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            throw std::bad_alloc();
        stack_ = static_cast<char *>(memory);
        mprotect(stack_, 4096, PROT_NONE); // an overflow is a fault and not the neighbour's stack
    }
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;
    ~Fiber()
    {
        munmap(stack_, STACK_BYTES);
    }

    // The next resume() calls `entry`, which must end in pause() and never return.
    void prepare(void (*entry)())
    {
#if defined(__SANITIZE_ADDRESS__)
        __asan_unpoison_memory_region(stack_ + 4096, STACK_BYTES - 4096);
#endif
#if defined(__x86_64__)
        // Six saved registers, the address that the switch returns to, and one slot where entry's caller would be.
        void **top = reinterpret_cast<void **>(stack_ + STACK_BYTES);
        top[-2] = reinterpret_cast<void *>(entry);
        top[-1] = nullptr;
        here_ = top - 8;
#else
        getcontext(&here_);
        here_.uc_stack.ss_sp = stack_ + 4096;
        here_.uc_stack.ss_size = STACK_BYTES - 4096;
        here_.uc_link = nullptr;
        makecontext(&here_, entry, 0);
#endif
    }

    void resume()
    {
#if defined(__SANITIZE_ADDRESS__)
        void *fake;
        __sanitizer_start_switch_fiber(&fake, stack_, STACK_BYTES);
#endif
        change(&there_, &here_);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    }

    void pause()
    {
#if defined(__SANITIZE_ADDRESS__)
        void *fake;
        __sanitizer_start_switch_fiber(&fake, scheduler_stack_, scheduler_bytes_);
#endif
        change(&here_, &there_);
        arrived();
    }

    // Called on the fiber whenever it starts to run, also at its entry.
    void arrived()
    {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack_, &scheduler_bytes_);
#endif
    }

  private:
#if defined(__x86_64__)
    using Context = void *;
    static void change(Context *save, Context *load)
    {
        simulator_switch_stacks(save, *load);
    }
#else
    using Context = ucontext_t;
    static void change(Context *save, Context *load)
    {
        swapcontext(save, load);
    }
#endif
    char *stack_;
    Context here_, there_;
#if defined(__SANITIZE_ADDRESS__)
    const void *scheduler_stack_ = nullptr;
    size_t scheduler_bytes_ = 0;
#endif
};
} // namespace simulator
