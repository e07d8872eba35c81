"""How threads share the tasks of a parallel loop."""

from libc.stdint cimport int32_t, int64_t

cdef extern from "threads.h" nogil:
    ctypedef struct task_range:
        pass
    int team_size(int threads)
    void share_tasks(task_range *ranges, int threads, int64_t first, int64_t end)
    int64_t take_task(task_range *ranges, int threads, int thread)
    void raise_flag(int32_t *flag)
