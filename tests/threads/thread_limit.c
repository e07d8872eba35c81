/* A preloaded pthread_create that fails at a limit, as the system's does. It counts the living threads but the first.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

typedef void *(*routine)(void *);
typedef int (*creator)(pthread_t *, const pthread_attr_t *, routine, void *);

typedef struct {
    routine run;
    void *argument;
} start;

static int living, most = INT_MAX;

void limit_threads(int limit)
{
    __atomic_store_n(&most, limit, __ATOMIC_SEQ_CST);
}

static void ended(void *nothing)
{
    (void)nothing;
    __atomic_fetch_sub(&living, 1, __ATOMIC_SEQ_CST);
}

static void *run_counted(void *argument)
{
    const start begun = *(start *)argument;
    void *result;
    free(argument);
    pthread_cleanup_push(ended, NULL);
    result = begun.run(begun.argument);
    pthread_cleanup_pop(1);
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, routine run, void *argument)
{
    const creator create = (creator)dlsym(RTLD_NEXT, "pthread_create");
    start *begun = malloc(sizeof(start));
    int status = EAGAIN;
    if (begun == NULL)
        return status;
    *begun = (start){run, argument};
    if (__atomic_fetch_add(&living, 1, __ATOMIC_SEQ_CST) < __atomic_load_n(&most, __ATOMIC_SEQ_CST))
        status = create(thread, attributes, run_counted, begun);
    if (status != 0) {
        ended(NULL);
        free(begun);
    }
    return status;
}
