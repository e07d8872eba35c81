/* The number of threads: by OpenMP, or 1 if the compiler has no OpenMP. */
#ifndef CONVGRAD_THREADS_H
#define CONVGRAD_THREADS_H

#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#define CONVGRAD_TEXT_(x) #x
#define CONVGRAD_TEXT(x) CONVGRAD_TEXT_(x)
#include "parallel/team.h"
#endif

/* 1 in a forked child, otherwise 0. The runtime's threads exist only in the parent, and a team in the child would wait
 * for them forever. The process may fork after a plan has chosen its number of threads, so team_size tests this. */
extern __attribute__((visibility("default"))) int convgrad_is_child; /* in shared.c */

static inline int has_threads(void)
{
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

/* Whether the compiler had no OpenMP, although the build did not turn it off. */
static inline int lacks_threads(void)
{
#if defined _OPENMP || defined CONVGRAD_NO_OPENMP
    return 0;
#else
    return 1;
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

/* Threads of a parallel region: `threads`, or fewer if the system cannot create them, or 1 without OpenMP. */
static inline int team_size(int threads)
{
#ifdef _OPENMP
    return threads <= 1 || convgrad_is_child ? 1 : threads == last_team ? threads : resized_team(threads);
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
    return lacks_threads() ? "none: the compiler had no OpenMP" : "none: built with CONVGRAD_CY_NO_OPENMP";
#endif
}

#endif
