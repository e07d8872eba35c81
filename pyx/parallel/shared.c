/* Variables that all parts of a module share. A static variable in a header would exist once in each part. */
#include "base/kept_memory.h"
#include "parallel/clock.h"
#include "parallel/threads.h"

memory_header *kept_memory;
task_clock *clock_of_tasks;
int convgrad_is_child;

#ifdef _OPENMP
_Thread_local int last_team = 1;
pthread_mutex_t resizing = PTHREAD_MUTEX_INITIALIZER;

static void note_child(void)
{
    convgrad_is_child = 1;
}

static __attribute__((constructor)) void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_child);
}
#endif
