/* Signals during long calls. The calling thread lets Python handle signals ten times a second. If a handler raises an
 * exception, as for Ctrl-C, all threads stop. No other thread can do this, because Python runs signal handlers only in
 * the main thread. If the calling thread is another one, no handler runs. */
#ifndef CONVGRAD_LISTENER_H
#define CONVGRAD_LISTENER_H

#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define LISTENING_PERIOD 100000000 /* nanoseconds; not shorter, because each look at signals may wait for the GIL */
#define LONG_CALL 50000000         /* nanoseconds; in a longer call, a sleep of a millisecond costs little */

typedef struct {
    pthread_t caller;
    int64_t next, late; /* the time of the next look at signals, and the time from which on the call is a long one */
    int32_t stopped;    /* whether a handler has raised an exception */
    PyObject *error[3]; /* this exception */
} listener;

/* The time in nanoseconds, by the coarse clock if the system has one. It is read in a few nanoseconds. */
static inline int64_t nanoseconds(void)
{
    struct timespec t;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void begin_listening(listener *l)
{
    const int64_t now = nanoseconds();
    l->caller = pthread_self();
    l->next = now + LISTENING_PERIOD;
    l->late = now + LONG_CALL;
    l->stopped = 0;
}

/* Lets Python handle signals. */
static __attribute__((noinline)) void listen_now(listener *l)
{
    PyGILState_STATE state = PyGILState_Ensure();
    if (PyErr_CheckSignals() != 0) {
        PyErr_Fetch(l->error, l->error + 1, l->error + 2);
        __atomic_store_n(&l->stopped, 1, __ATOMIC_RELAXED);
    }
    PyGILState_Release(state);
    l->next = nanoseconds() + LISTENING_PERIOD;
}

/* Returns whether the call must stop. In the calling thread, it first lets Python handle signals if it is time to. Any
 * thread of the team calls it, without the GIL, after each part of the work, which takes milliseconds at most. */
static inline int must_stop(listener *l)
{
    if (__atomic_load_n(&l->stopped, __ATOMIC_RELAXED))
        return 1;
    if (pthread_equal(pthread_self(), l->caller) && nanoseconds() >= l->next)
        listen_now(l);
    return l->stopped;
}

/* Called with the GIL after the last task. Returns 0, or sets the handler's exception and returns -1. */
static inline int end_listening(listener *l)
{
    if (!l->stopped)
        return 0;
    PyErr_Restore(l->error[0], l->error[1], l->error[2]);
    return -1;
}

#endif
