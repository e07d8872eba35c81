/* The tasks of a parallel loop, which the threads of a team share. The calling thread lets Python handle signals
 * meanwhile (listener.h). */
#ifndef CONVGRAD_TASKS_H
#define CONVGRAD_TASKS_H

#include <stdint.h>
#include <time.h>

#include "parallel/listener.h"

/* The range of one worker: its tasks next .. end - 1 are not yet taken, and none if next >= end. A worker first takes
 * the tasks of its own range. This range is the same in every call, so its data may still be in the cache of the core.
 * Then the worker takes tasks from the ranges of the others. */
typedef struct {
    int64_t next, end;
    char unused[48]; /* fills a cache line: threads that write to the same line slow each other down */
} task_range;

typedef struct {
    int threads;     /* of the parallel region, the same for all loops of a call */
    int max_workers; /* maximum number of workers in any loop: the length of `ranges` */
    int workers;     /* of this loop, each with a range; usually, each runs in a thread of its own */
    int begun, done; /* numbers of workers that have begun this loop, and that have ended it */
    task_range *ranges;
    char *shared;         /* memory for all tasks of the call */
    char *scratch;        /* memory of worker 0, followed by the memory of worker 1, and so on */
    int64_t scratch_size; /* bytes of scratch memory for each worker */
    void *memory;         /* the allocation that contains ranges, shared and scratch */
    listener signals;
} team;

/* Number of workers: min(threads, tasks). */
static inline int workers_of(int threads, int64_t tasks)
{
    return tasks < threads ? (int)tasks : threads;
}

/* Begins a loop: divides the tasks first .. end - 1 into one range for each worker. Returns the number of workers. */
static inline int share_tasks(team *t, int64_t first, int64_t end)
{
    const int workers = workers_of(t->max_workers, end - first);
    t->workers = workers;
    t->begun = t->done = 0;
    for (int i = 0; i < workers; i++) {
        t->ranges[i].next = first + (end - first) * i / workers;
        t->ranges[i].end = first + (end - first) * (i + 1) / workers;
    }
    return workers;
}

/* Takes a task for a worker. Returns -1 if all are taken. */
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

/* Whether the call has been stopped by a signal handler (see must_stop). A long task may then end early, because its
 * result will not be used. */
static inline int is_stopped(team *t)
{
    return must_stop(&t->signals);
}

/* As take_task, but returns -1 also if the call has been stopped. Workers take their first task without this check. */
static inline int64_t next_task(team *t, int worker)
{
    const int64_t task = take_task(t, worker);
    return task >= 0 && is_stopped(t) ? -1 : task;
}

/* Begins a worker's part of a loop. */
static inline void join_team(team *t)
{
    if (t->workers > 1)
        __atomic_fetch_add(&t->begun, 1, __ATOMIC_RELAXED);
}

/* Ends a worker's part of a loop. In a long call, the calling thread waits here for the other workers, and lets Python
 * handle signals meanwhile. It waits only for workers that have begun the loop: if the region has fewer threads than
 * workers, the calling thread may have to run the others next. */
static inline void leave_team(team *t)
{
    const struct timespec millisecond = {0, 1000000};
    if (t->workers == 1)
        return;
    __atomic_fetch_add(&t->done, 1, __ATOMIC_RELAXED);
    if (!pthread_equal(pthread_self(), t->signals.caller) || nanoseconds() < t->signals.late)
        return;
    while (__atomic_load_n(&t->done, __ATOMIC_RELAXED) < __atomic_load_n(&t->begun, __ATOMIC_RELAXED) && !is_stopped(t))
        nanosleep(&millisecond, 0);
}

/* Sets a flag. Several threads may set it at the same time. It is read only after the loop has ended. */
static inline void raise_flag(int32_t *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

#endif
