/* OpenMP, or one thread where the compiler has none. */
#ifndef CONVGRAD_THREADS_H
#define CONVGRAD_THREADS_H

#ifdef _OPENMP
#include <omp.h>
#define CONVGRAD_TEXT_(x) #x
#define CONVGRAD_TEXT(x) CONVGRAD_TEXT_(x)
#endif

static inline int threads_available(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
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
