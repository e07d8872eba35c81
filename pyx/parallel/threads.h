/* OpenMP, or one thread where the compiler has none. */
#ifndef CONVGRAD_THREADS_H
#define CONVGRAD_THREADS_H

#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#define CONVGRAD_TEXT_(x) #x
#define CONVGRAD_TEXT(x) CONVGRAD_TEXT_(x)
#include "parallel/team.h"
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

#endif
