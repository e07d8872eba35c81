/* The tasks of a parallel loop, shared by the threads of a team that listens (listener.h). */
#ifndef CONVGRAD_TASKS_H
#define CONVGRAD_TASKS_H

#include <stdint.h>
#include <time.h>

#include "parallel/listener.h"

/* The tasks next .. end - 1 of one thread. A thread takes the tasks of its own range first. The range is the same in
 * every call, so its data may still be in the thread's cache. Then the thread takes tasks of others. */
typedef struct {
    int64_t next, end;
    char rest_of_line[48]; /* one cache line per range, so that threads do not share one */
} task_range;

typedef struct {
    int threads;     /* of the parallel region, the same for all loops of a call */
    int most;        /* threads that may have tasks: the length of `ranges` */
    int workers;     /* threads that have tasks in this loop */
    int begun, done; /* workers that have begun the loop, and that have ended it */
    task_range *ranges;
    char *shared;         /* memory for all tasks of the call */
    char *scratch;        /* memory of worker 0, followed by the next worker's */
    int64_t scratch_size; /* bytes of scratch memory for each worker */
    void *memory;         /* the block that contains all of these, to be freed */
    listener ears;
} team;

/* Number of workers: min(threads, tasks). */
static inline int workers_of(int threads, int64_t tasks)
{
    return tasks < threads ? (int)tasks : threads;
}

/* Shares the tasks first .. end - 1 among workers, a range for each. Returns the number of workers. */
static inline int share_tasks(team *t, int64_t first, int64_t end)
{
    const int workers = workers_of(t->most, end - first);
    t->workers = workers;
    t->begun = t->done = 0;
    for (int i = 0; i < workers; i++) {
        t->ranges[i].next = first + (end - first) * i / workers;
        t->ranges[i].end = first + (end - first) * (i + 1) / workers;
    }
    return workers;
}

/* The next task for a worker, or -1 if all are taken. */
static inline int64_t take_task(team *t, int worker)
{
    for (int other = 0; other < t->workers; other++) {
        task_range *range = t->ranges + (worker + other) % t->workers;
        if (__atomic_load_n(&range->next, __ATOMIC_RELAXED) < range->end) {
            const int64_t task = __atomic_fetch_add(&range->next, 1, __ATOMIC_RELAXED);
            if (task < range->end)
                return task;
        }
    }
    return -1;
}

/* Whether the call has been stopped. A long task may then end early, because nobody will read its result. */
static inline int is_stopped(team *t)
{
    return must_stop(&t->ears);
}

/* The next task for a worker after its first one, or -1 if all are taken or the call has been stopped. */
static inline int64_t next_task(team *t, int worker)
{
    const int64_t task = take_task(t, worker);
    return task >= 0 && is_stopped(t) ? -1 : task;
}

static inline void count_in(team *t)
{
    if (t->workers > 1)
        __atomic_fetch_add(&t->begun, 1, __ATOMIC_RELAXED);
}

/* Ends a worker's part of a loop. In a long call, the caller keeps listening to signals while others work. It does not
 * wait for workers that have not begun, because the same thread may have to run them after this one. */
static inline void leave_team(team *t)
{
    const struct timespec millisecond = {0, 1000000};
    if (t->workers == 1)
        return;
    __atomic_fetch_add(&t->done, 1, __ATOMIC_RELAXED);
    if (!pthread_equal(pthread_self(), t->ears.caller) || nanoseconds() < t->ears.late)
        return;
    while (__atomic_load_n(&t->done, __ATOMIC_RELAXED) < __atomic_load_n(&t->begun, __ATOMIC_RELAXED) && !is_stopped(t))
        nanosleep(&millisecond, 0);
}

/* Sets a flag. Several threads may set it at once, and nobody reads it before the loop has ended. */
static inline void raise_flag(int32_t *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

#endif
