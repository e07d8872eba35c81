"""How threads share the tasks of a parallel loop, and the state in which each of them computes."""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "float_state.h" nogil:
    uint64_t enter_floats()
    void leave_floats(uint64_t before)

cdef extern from "threads.h" nogil:
    ctypedef struct task_range:
        pass
    int team_size(int threads)
    void share_tasks(task_range *ranges, int threads, int64_t first, int64_t end)
    int64_t take_task(task_range *ranges, int threads, int thread)
    void raise_flag(int32_t *flag)
