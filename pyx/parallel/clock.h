/* A clock that measures the time of each task, for `python -m bench.cores`. Usually it is off, and a task only tests a
 * pointer. While it is on, each call uses one thread, whatever its plan says, so that tasks do not compete for memory.
 */
#ifndef CONVGRAD_CLOCK_H
#define CONVGRAD_CLOCK_H

#include <stdint.h>
#include <time.h>

typedef struct {
    int64_t loop, task; /* the index of the loop in the call, and of the task in the loop */
    int64_t begin, end; /* nanoseconds */
} task_time;

typedef struct {
    int64_t loops, count; /* loops and tasks so far */
    int64_t most;         /* the length of `times`; further tasks are only counted */
    int64_t shared;       /* bytes that tasks share, without the arrays */
    task_time *times;
} task_clock;

extern __attribute__((visibility("hidden"))) task_clock *clock_of_tasks; /* in shared.c */

static inline int is_timed(void)
{
    return clock_of_tasks != 0;
}

static inline int64_t exact_nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void set_clock(task_clock *clock)
{
    clock_of_tasks = clock;
}

static inline void note_shared(int64_t bytes)
{
    if (is_timed())
        clock_of_tasks->shared += bytes;
}

static inline void note_loop(void)
{
    if (is_timed())
        clock_of_tasks->loops++;
}

/* The time at which a task begins, or 0 if the clock is off. */
static inline int64_t begin_task(void)
{
    return is_timed() ? exact_nanoseconds() : 0;
}

static inline void end_task(int64_t task, int64_t begin)
{
    task_clock *clock = clock_of_tasks;
    if (clock == 0)
        return;
    if (clock->count < clock->most) {
        const task_time time = {clock->loops - 1, task, begin, exact_nanoseconds()};
        clock->times[clock->count] = time;
    }
    clock->count++;
}

#endif
