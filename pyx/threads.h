/* OpenMP, or one thread where the compiler has none. */
#ifndef CONVGRAD_THREADS_H
#define CONVGRAD_THREADS_H

#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#define CONVGRAD_TEXT_(x) #x
#define CONVGRAD_TEXT(x) CONVGRAD_TEXT_(x)
#include "team.h"
#endif

static inline int has_threads(void)
{
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

static inline int threads_available(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* Threads of a parallel region that may have so many: fewer where the system creates no more, 1 without OpenMP. */
static inline int team_size(int threads)
{
#ifdef _OPENMP
    return threads <= 1 ? 1 : threads == last_team ? threads : resized_team(threads);
#else
    (void)threads;
    return 1;
#endif
}

static inline const char *threads_runtime(void)
{
#ifdef _OPENMP
    return "OpenMP " CONVGRAD_TEXT(_OPENMP);
#else
    return "none: built without OpenMP";
#endif
}

/* Tasks first .. end - 1, a range for each thread. A thread first takes those of its own range, the same in every call, so
 * that it finds in its cache what it left there; then it helps the others. */
typedef struct {
    int64_t next, end;
    char rest_of_line[48]; /* no two threads count in one cache line */
} task_range;

static inline void share_tasks(task_range *ranges, int threads, int64_t first, int64_t end)
{
    for (int thread = 0; thread < threads; thread++) {
        ranges[thread].next = first + (end - first) * thread / threads;
        ranges[thread].end = first + (end - first) * (thread + 1) / threads;
    }
}

/* The next task of a thread, or -1 when all are taken. */
static inline int64_t take_task(task_range *ranges, int threads, int thread)
{
    for (int other = 0; other < threads; other++) {
        task_range *range = ranges + (thread + other) % threads;
        if (__atomic_load_n(&range->next, __ATOMIC_RELAXED) < range->end) {
            const int64_t task = __atomic_fetch_add(&range->next, 1, __ATOMIC_RELAXED);
            if (task < range->end)
                return task;
        }
    }
    return -1;
}

/* A flag that several threads may raise at once, and that none reads before they are done. */
static inline void raise_flag(int32_t *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

#endif
