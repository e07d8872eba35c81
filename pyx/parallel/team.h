/* Teams of OpenMP's threads, no larger than the system allows. If a thread cannot be created, OpenMP's runtime ends the
 * process. So the system's limit is tested before a team grows. */
#ifndef CONVGRAD_TEAM_H
#define CONVGRAD_TEAM_H

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Size of the last team of the calling thread, including this thread. The runtime keeps one team for each thread that
 * has begun a parallel region. A smaller region ends the threads that it does not need, so a larger region after it
 * creates threads again. */
extern __attribute__((visibility("hidden"))) _Thread_local int last_team; /* in shared.c */

/* Held while a team grows. Otherwise two callers could both count the last thread that the system allows. */
extern __attribute__((visibility("hidden"))) pthread_mutex_t resizing;

/* A thread that is created only to find out whether the system can create it. It waits until the gate is unlocked. */
typedef struct {
    pthread_t thread;
    pthread_mutex_t *gate;
    long id;
} trial;

static void *wait_at_gate(void *argument)
{
    trial *t = argument;
#ifdef __linux__
    t->id = syscall(SYS_gettid);
#endif
    pthread_mutex_lock(t->gate);
    pthread_mutex_unlock(t->gate);
    return NULL;
}

/* Joins a thread, and waits until the system no longer counts it. On Linux, this is a little later than the join. */
static void end_trial(const trial *t)
{
    pthread_join(t->thread, NULL);
#ifdef __linux__
    for (int turn = 0; turn < 10000 && syscall(SYS_tgkill, getpid(), t->id, 0) == 0; turn++)
        sched_yield();
#endif
}

/* Bytes of stack that OMP_STACKSIZE or GOMP_STACKSIZE requests for OpenMP's threads, or 0. The value is a number and B,
 * K (the default), M or G. */
static size_t wanted_stack(void)
{
    const char *text = getenv("OMP_STACKSIZE");
    char *unit;
    unsigned long size;
    if (text == NULL)
        text = getenv("GOMP_STACKSIZE");
    if (text == NULL)
        return 0;
    size = strtoul(text, &unit, 10);
    while (isspace((unsigned char)*unit))
        unit++;
    switch (tolower((unsigned char)*unit)) {
    case 'b': return size;
    case 'm': return (size_t)size << 20;
    case 'g': return (size_t)size << 30;
    default: return (size_t)size << 10;
    }
}

/* Number of further threads that the system can create now, at most `limit`. For the test, all of them are created;
 * they have ended on return. */
static int creatable_threads(int limit)
{
    trial *trials = malloc(limit * sizeof(trial));
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    const size_t stack = wanted_stack();
    int count = 0;
    if (trials == NULL || pthread_attr_init(&attributes) != 0) {
        free(trials);
        return 0;
    }
    if (stack > 0)
        pthread_attr_setstacksize(&attributes, stack); /* like the runtime, ignores sizes that are too small */
    pthread_mutex_lock(&gate);
    for (; count < limit; count++) {
        trials[count].gate = &gate;
        if (pthread_create(&trials[count].thread, &attributes, wait_at_gate, trials + count) != 0)
            break;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < count; i++)
        end_trial(trials + i);
    pthread_attr_destroy(&attributes);
    free(trials);
    return count;
}

/* team_size for another size than the last team's. If the team grows, an empty region is run here, so that its threads
 * exist before the lock is released. */
static __attribute__((noinline)) int resized_team(int threads)
{
    if (threads > last_team) {
        pthread_mutex_lock(&resizing);
        threads = last_team + creatable_threads(threads - last_team);
        if (threads > last_team) {
#pragma omp parallel num_threads(threads)
            {
                __asm__ volatile("" ::: "memory"); /* keeps the compiler from removing the region */
            }
        }
        pthread_mutex_unlock(&resizing);
    }
    last_team = threads;
    return threads;
}

#endif
