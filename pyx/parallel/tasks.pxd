"""The parallel loop of all kernels: threads, their memory, shares of tasks, signals and rounding.

A call of a kernel has one team, one block of memory, and one loop after the other::

    cdef team all
    form_team(&all, threads)
    try:
        if begin_call(&all, shared, tasks, scratch, before):
            run(&all, <task_function>some_task[scalar, compute], &job, source, 0, tasks)
    finally:
        end_call(&all)
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t

from base.memory cimport allocate, first_line, give_memory, in_lines

cdef extern from "parallel/float_state.h" nogil:
    uint64_t enter_floats()
    void leave_floats(uint64_t before)

cdef extern from "parallel/clock.h" nogil:
    bint is_timed()
    void note_shared(int64_t bytes)
    void note_loop()
    int64_t begin_task()
    void end_task(int64_t task, int64_t begin)

cdef extern from "parallel/threads.h" nogil:
    int team_size(int threads)

cdef extern from "parallel/tasks.h" nogil:
    ctypedef struct task_range:
        pass
    ctypedef struct listener:
        pass
    ctypedef struct team:
        int threads, max_workers
        task_range *ranges
        char *shared
        char *scratch
        int64_t scratch_size
        void *memory
        listener signals
    int workers_of(int threads, int64_t tasks)
    int share_tasks(team *t, int64_t first, int64_t end)
    int64_t take_task(team *t, int worker)
    int64_t next_task(team *t, int worker)
    bint is_stopped(team *t)
    void join_team(team *t)
    void leave_team(team *t)
    void raise_flag(int32_t *flag)

cdef extern from "parallel/listener.h":
    void begin_listening(listener *l) nogil
    int end_listening(listener *l) except -1

cdef enum:  # greatest size of memory that is kept for the next call
    KEPT_BYTES = 64 << 20
    KEPT_BYTES_OF_THREAD = 8 << 20

# One task of a job. ``context`` has the parameters that all tasks of the job share. Functions that are cast to this
# type have typed pointers instead of void pointers; the types of ``source`` and ``scratch`` select their
# specialization.
ctypedef void (*task_function)(const void *context, const void *source, void *scratch, int64_t task) noexcept nogil


cdef inline void form_team(team *t, int64_t threads) noexcept nogil:
    """Set the number of threads: ``threads``, or fewer if the system cannot create them."""
    t.threads = t.max_workers = 1 if is_timed() else team_size(<int>threads)
    t.memory = NULL


cdef inline bint begin_call(team *t, int64_t shared, int64_t tasks, int64_t scratch, before) except -1:
    """Allocate all memory of a call, then call ``before``. Returns whether the call should go on.

    All tasks share ``shared`` bytes. Each worker has ``scratch`` bytes; ``tasks`` is the number of tasks of the longest
    loop that uses them. If the allocation fails, nothing has been written. If ``before`` returns true, the result
    exists already and the call ends.
    """
    cdef int64_t ranges = in_lines(t.max_workers * sizeof(task_range))
    t.scratch_size = in_lines(scratch)
    t.memory = allocate(ranges, in_lines(shared), workers_of(t.max_workers, tasks) * t.scratch_size)
    t.ranges = <task_range *>first_line(t.memory)
    t.shared = first_line(t.memory) + ranges
    t.scratch = t.shared + in_lines(shared)
    note_shared(shared)
    if before is not None and before():
        return False
    begin_listening(&t.signals)
    return True


cdef inline void end_call(team *t) noexcept nogil:
    give_memory(t.memory, KEPT_BYTES + t.max_workers * KEPT_BYTES_OF_THREAD)


cdef inline void work(
    team *t, task_function function, const void *context, const void *source, int worker
) noexcept nogil:
    """Run tasks of one worker until none is left or the call is stopped."""
    cdef void *scratch = t.scratch + worker * t.scratch_size
    cdef uint64_t state
    cdef int64_t task, begin
    join_team(t)
    state = enter_floats()
    task = take_task(t, worker)
    while task >= 0:
        begin = begin_task()
        function(context, source, scratch, task)
        end_task(task, begin)
        task = next_task(t, worker)
    leave_floats(state)
    leave_team(t)


cdef inline int run(
    team *t, task_function function, const void *context, const void *source, int64_t first, int64_t end
) except -1:
    """Run tasks first .. end - 1 in any order. If a signal handler raises, the rest is skipped and the error raised."""
    cdef int worker, workers = share_tasks(t, first, end)
    if workers == 0:
        return 0
    note_loop()
    if t.threads == 1 or workers == 1:  # starting a team would cost microseconds
        with nogil:
            work(t, function, context, source, 0)
    else:
        for worker in prange(workers, schedule="static", num_threads=t.threads, nogil=True):
            work(t, function, context, source, worker)
    return end_listening(&t.signals)
