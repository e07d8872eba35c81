/* A preloaded replacement of the C library's allocator. It fails on request, counts the memory of known callers, and
 * can place memory before a page that nobody may touch.
 *
 * A caller is known by its return address. Python's allocator is wrapped instead, since most of its memory comes from
 * pools. The names with __libc belong to GNU's C library.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KERNELS, NUMPY, PYTHON, SOURCES };
enum { MOST_RANGES = 64, PLACES = 1 << 14 };

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* The allocations that fail: in_a_row in sequence from the armed source, beginning with number `first`. */
static int armed = SOURCES;
static long first, in_a_row, seen, failed;

static struct {
    uintptr_t begin, end;
    int source;
} ranges[MOST_RANGES];
static int range_count;

/* Memory that is held: open addressing by the address. A place with the address 1 was given back. */
static struct {
    uintptr_t address;
    size_t size;
    int source;
    size_t mapped; /* bytes of its own pages, or none */
} held[PLACES];
static long held_bytes[SOURCES], all_bytes, most_bytes, held_count;
static int lock;

/* Whether memory of the kernels ends at the begin of a page that cannot be touched. */
static int guards;

void guard_kernels(void)
{
    __atomic_store_n(&guards, 1, __ATOMIC_SEQ_CST);
}

void watch_range(uintptr_t begin, uintptr_t end, int source)
{
    ranges[range_count].begin = begin;
    ranges[range_count].end = end;
    ranges[range_count].source = source;
    __atomic_store_n(&range_count, range_count + 1, __ATOMIC_SEQ_CST);
}

void arm(int source, long n, long count)
{
    first = n;
    in_a_row = count;
    seen = failed = 0;
    __atomic_store_n(&armed, source, __ATOMIC_SEQ_CST);
}

/* How many failed. */
long disarm(void)
{
    __atomic_store_n(&armed, SOURCES, __ATOMIC_SEQ_CST);
    return failed;
}

long bytes_held(int source)
{
    return held_bytes[source];
}

/* The most bytes that all sources held at one time since the last call, less their bytes at that call. */
long most_bytes_more(void)
{
    static long before;
    const long most = most_bytes - before;
    before = most_bytes = all_bytes;
    return most;
}

static int source_of(const void *caller)
{
    const int count = __atomic_load_n(&range_count, __ATOMIC_SEQ_CST);
    for (int i = 0; i < count; i++)
        if ((uintptr_t)caller - ranges[i].begin < ranges[i].end - ranges[i].begin)
            return ranges[i].source;
    return SOURCES;
}

static int fails(int source)
{
    long n;
    if (source == SOURCES || source != __atomic_load_n(&armed, __ATOMIC_SEQ_CST))
        return 0;
    n = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (n < first || n - first >= in_a_row)
        return 0;
    __atomic_add_fetch(&failed, 1, __ATOMIC_SEQ_CST);
    errno = ENOMEM;
    return 1;
}

static void enter(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        ;
}

static void leave(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static uintptr_t place_of(const void *memory)
{
    return ((uintptr_t)memory >> 4) * 0x9E3779B97F4A7C15u >> 50;
}

static void *noted(void *memory, size_t size, int source, size_t mapped)
{
    if (memory == NULL || source == SOURCES)
        return memory;
    enter();
    for (uintptr_t i = place_of(memory), n = 0; n < PLACES; i++, n++)
        if (held[i % PLACES].address <= 1) {
            held[i % PLACES].address = (uintptr_t)memory;
            held[i % PLACES].size = size;
            held[i % PLACES].source = source;
            held[i % PLACES].mapped = mapped;
            held_count++;
            held_bytes[source] += size;
            all_bytes += size;
            if (all_bytes > most_bytes)
                most_bytes = all_bytes;
            break;
        }
    leave();
    return memory;
}

/* Bytes of the pages that only this memory has. */
static size_t forget(const void *memory)
{
    size_t mapped = 0;
    if (memory == NULL || __atomic_load_n(&held_count, __ATOMIC_SEQ_CST) == 0)
        return 0;
    enter();
    for (uintptr_t i = place_of(memory), n = 0; n < PLACES && held[i % PLACES].address != 0; i++, n++)
        if (held[i % PLACES].address == (uintptr_t)memory) {
            held[i % PLACES].address = 1;
            held_bytes[held[i % PLACES].source] -= held[i % PLACES].size;
            all_bytes -= held[i % PLACES].size;
            mapped = held[i % PLACES].mapped;
            held_count--;
            break;
        }
    leave();
    return mapped;
}

/* `size` bytes, aligned, before a page that cannot be touched. The alignment leaves some bytes free between. */
static void *guarded(size_t size, size_t alignment)
{
    const size_t page = getpagesize(), pages = (size + page - 1) / page * page;
    char *memory = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + pages, page, PROT_NONE) != 0)
        return NULL;
    return noted(memory + (pages - size) / alignment * alignment, size, KERNELS, pages + page);
}

void *malloc(size_t size)
{
    const int source = source_of(__builtin_return_address(0));
    if (fails(source))
        return NULL;
    return guards && source == KERNELS ? guarded(size, 16) : noted(__libc_malloc(size), size, source, 0);
}

void *calloc(size_t count, size_t size)
{
    const int source = source_of(__builtin_return_address(0));
    return fails(source) ? NULL : noted(__libc_calloc(count, size), count * size, source, 0);
}

void *realloc(void *memory, size_t size)
{
    const int source = source_of(__builtin_return_address(0));
    void *moved;
    if (fails(source))
        return NULL;
    forget(memory); /* before another caller gets the place; memory that cannot be moved is no longer counted */
    moved = __libc_realloc(memory, size);
    return noted(moved, size, source, 0);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    const int source = source_of(__builtin_return_address(0));
    if (fails(source))
        return NULL;
    if (guards && source == KERNELS)
        return guarded(size, alignment);
    return noted(__libc_memalign(alignment, size), size, source, 0);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    const int source = source_of(__builtin_return_address(0));
    if (fails(source))
        return ENOMEM;
    *memory = noted(__libc_memalign(alignment, size), size, source, 0);
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory)
{
    const size_t mapped = forget(memory);
    if (mapped > 0)
        munmap((void *)((uintptr_t)memory / getpagesize() * getpagesize()), mapped);
    else
        __libc_free(memory);
}

/* PyMemAllocatorEx, and Python's functions that read and set one. Python's headers are not needed. */
typedef struct {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} allocator;

enum { DOMAINS = 3 };

static allocator usual[DOMAINS];

static void *python_malloc(void *domain, size_t size)
{
    const allocator *own = domain;
    return fails(PYTHON) ? NULL : own->malloc(own->context, size);
}

static void *python_calloc(void *domain, size_t count, size_t size)
{
    const allocator *own = domain;
    return fails(PYTHON) ? NULL : own->calloc(own->context, count, size);
}

static void *python_realloc(void *domain, void *memory, size_t size)
{
    const allocator *own = domain;
    return fails(PYTHON) ? NULL : own->realloc(own->context, memory, size);
}

static void python_free(void *domain, void *memory)
{
    const allocator *own = domain;
    own->free(own->context, memory);
}

/* Wrap Python's allocators, once, with the functions PyMem_GetAllocator and PyMem_SetAllocator. */
void watch_python(void (*get)(int, allocator *), void (*set)(int, allocator *))
{
    for (int domain = 0; domain < DOMAINS; domain++) {
        allocator wrapped = {usual + domain, python_malloc, python_calloc, python_realloc, python_free};
        get(domain, usual + domain);
        set(domain, &wrapped);
    }
}
