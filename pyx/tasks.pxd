"""How threads share the tasks of a parallel loop, listen to signals, and the state in which each of them computes.

A loop over tasks::

    for worker in prange(share_tasks(&t, first, end), num_threads=t.threads, use_threads_if=t.threads > 1, ...):
        state = enter_loop(&t)
        task = take_task(&t, worker)
        while task >= 0:
            ...
            task = next_task(&t, worker)
        leave_loop(&t, state)
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "float_state.h" nogil:
    uint64_t enter_floats()
    void leave_floats(uint64_t before)

cdef extern from "threads.h" nogil:
    int team_size(int threads)

cdef extern from "tasks.h" nogil:
    ctypedef struct task_range:
        pass
    ctypedef struct listener:
        pass
    ctypedef struct team:
        int threads, most
        listener ears
    void begin_team(team *t, int threads, void *ranges)
    int workers_of(int threads, int64_t tasks)
    int share_tasks(team *t, int64_t first, int64_t end)
    int64_t take_task(team *t, int worker)
    int64_t next_task(team *t, int worker)
    bint is_stopped(team *t)
    void count_in(team *t)
    void leave_team(team *t)
    void raise_flag(int32_t *flag)

cdef extern from "listener.h":
    int end_listening(listener *ears) except -1


cdef inline uint64_t enter_loop(team *t) noexcept nogil:
    """A worker begins; the floating-point state that it has found."""
    count_in(t)
    return enter_floats()


cdef inline void leave_loop(team *t, uint64_t state) noexcept nogil:
    leave_floats(state)
    leave_team(t)
