/* A call of minutes listens: the thread that made it lets Python handle signals ten times a second, and where a handler raises,
 * as for Ctrl-C, no thread goes on. Python handles them in the main thread alone, and nothing can listen in its place. */
#ifndef CONVGRAD_LISTENER_H
#define CONVGRAD_LISTENER_H

#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define LISTENING_PERIOD 100000000 /* nanoseconds: each time may wait for Python's lock */
#define LONG_CALL 50000000         /* where sleeping for a millisecond costs little */

typedef struct {
    pthread_t caller;
    int64_t next, late; /* when it listens again, and from when on the call is a long one */
    int32_t stopped;
    PyObject *error[3];
} listener;

/* Nanoseconds of a clock that is read in a few of them, where there is one. */
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

/* Whether to stop. Without Python's lock, by any thread of the team, between parts of the work that take milliseconds at most. */
static inline int must_stop(listener *l)
{
    if (__atomic_load_n(&l->stopped, __ATOMIC_RELAXED))
        return 1;
    if (pthread_equal(pthread_self(), l->caller) && nanoseconds() >= l->next)
        listen_now(l);
    return l->stopped;
}

/* With Python's lock, after the last task: -1 and the handler's exception, or 0. */
static inline int end_listening(listener *l)
{
    if (!l->stopped)
        return 0;
    PyErr_Restore(l->error[0], l->error[1], l->error[2]);
    return -1;
}

#endif
