/* The tasks of a parallel loop, shared by the threads of a team that listens (listener.h). */
#ifndef CONVGRAD_TASKS_H
#define CONVGRAD_TASKS_H

#include <stdint.h>
#include <time.h>

#include "parallel/listener.h"

/* Tasks next .. end - 1 of a thread, which takes those of its own range first, the same in every call, so that it finds in
 * its cache what it left there; then it helps the others. */
typedef struct {
    int64_t next, end;
    char rest_of_line[48]; /* no two threads count in one cache line */
} task_range;

typedef struct {
    int threads;     /* of the parallel region, which is as large for all loops of a call */
    int most;        /* of them that may have tasks: as many as there are ranges for */
    int workers;     /* of them that have tasks in this loop */
    int begun, done; /* workers in the loop, and behind it */
    task_range *ranges;
    char *shared;         /* memory for all tasks of the call */
    char *scratch;        /* memory of worker 0; that of the next worker follows */
    int64_t scratch_size; /* bytes of it for each worker */
    void *memory;         /* all of that, to be freed */
    listener ears;
} team;

/* How many of so many threads work at so many tasks. */
static inline int workers_of(int threads, int64_t tasks)
{
    return tasks < threads ? (int)tasks : threads;
}

/* Tasks first .. end - 1, for each worker a range of them. How many workers there are. */
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

/* A task for a worker, or -1 when all are taken. */
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

/* Whether to leave a task, too, whose result nobody will read. */
static inline int is_stopped(team *t)
{
    return must_stop(&t->ears);
}

/* The same after a task: -1 also where the call has been stopped. */
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

/* In a long call, the caller goes on listening while others work. It waits for none that has not begun: its turn may come
 * after this one, in the same thread. */
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

/* A flag that several threads may raise at once, and that none reads before they are done. */
static inline void raise_flag(int32_t *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

#endif
