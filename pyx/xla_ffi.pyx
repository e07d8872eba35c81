"""The handler that XLA calls for a convolution: an XLA FFI handler of API version 0.1.

The structs of xla/ffi/api/c_api.h are declared here up to the last field that is read, so the build needs no header of
jaxlib. XLA promises that a handler of an older minor version keeps working; jaxlib 0.7 has version 0.1.
"""

from time import sleep

cimport cython
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t

cdef extern from *:
    """
    /* The number of threads in the handler, and whether it refuses calls. */
    static int inside, closed;
    static void enter(void) { __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST); }
    static void leave(void) { __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST); }
    static int is_busy(void) { return __atomic_load_n(&inside, __ATOMIC_SEQ_CST); }
    static void refuse(void) { __atomic_store_n(&closed, 1, __ATOMIC_SEQ_CST); }
    static int is_closed(void) { return __atomic_load_n(&closed, __ATOMIC_SEQ_CST); }
    """
    void enter() noexcept nogil
    void leave() noexcept nogil
    bint is_busy() noexcept nogil
    void refuse() noexcept nogil
    bint is_closed() noexcept nogil

cdef enum:
    API_MAJOR = 0
    API_MINOR = 1
    EXTENSION_METADATA = 1
    STAGE_EXECUTE = 3
    ERROR_CANCELLED = 1
    ERROR_INTERNAL = 13
    ERROR_RESOURCE_EXHAUSTED = 8

cdef struct Extension:
    size_t struct_size
    int kind
    Extension *next

cdef struct ApiVersion:
    size_t struct_size
    Extension *extension
    int major
    int minor

cdef struct Metadata:
    size_t struct_size
    ApiVersion api_version

cdef struct MetadataExtension:
    Extension base
    Metadata *metadata

cdef struct Error:  # opaque
    int unused

cdef struct ErrorArguments:
    size_t struct_size
    Extension *extension
    const char *message
    int code

ctypedef Error *(*CreateError)(ErrorArguments *) noexcept nogil

cdef struct Api:
    size_t struct_size
    Extension *extension
    ApiVersion version
    const void *internal
    CreateError create_error

cdef struct Buffer:
    size_t struct_size
    Extension *extension
    int dtype
    void *data

cdef struct ByteSpan:
    const char *data
    size_t size

cdef struct Operands:  # arguments and results have the same fields
    size_t struct_size
    Extension *extension
    int64_t count
    int *kinds
    Buffer **buffers

cdef struct Attributes:
    size_t struct_size
    Extension *extension
    int64_t count
    int *kinds
    ByteSpan **names
    ByteSpan **values

cdef struct CallFrame:
    size_t struct_size
    Extension *extension
    const Api *api
    void *context
    int stage
    Operands arguments
    Operands results
    Attributes attributes

#: The plans of all calls by (text, threads), the function that makes a missing one, and the number of threads.
cdef dict known = {}
cdef object make = None
cdef object threads = None

#: Number of computed calls.
cdef long computed_calls = 0


@cython.final
cdef class Plan:
    """A plan that computes a call's result from the addresses of its operands.

    ``run(first, second, result)`` takes addresses. ``operands`` has the operand of each of them: lhs (0), rhs (1) or
    the output (2). ``offsets`` has the bytes from the operand's address to its first element, because a reversed view
    begins at its operand's end.
    """
    cdef object run
    cdef int operands[3]
    cdef Py_ssize_t offsets[3]

    def __init__(self, run, operands, offsets):
        cdef int i
        self.run = run
        for i in range(3):
            self.operands[i], self.offsets[i] = operands[i], offsets[i]


def set_planner(dict plans, function, thread_count):
    """Set the cache of plans, the function (text, threads) -> `Plan`, and the function that counts the threads."""
    global known, make, threads
    known, make, threads = plans, function, thread_count


def computed():
    """The number of calls that were computed in this process."""
    return computed_calls


def close():
    """Refuse later calls, and wait until the present ones end.

    While Python shuts down, it ends each thread that asks for the GIL. XLA would wait for such a thread for ever.
    """
    refuse()
    while is_busy():
        sleep(0.001)


def handler():
    """The handler as the capsule that ``jax.ffi.register_ffi_target`` takes."""
    return PyCapsule_New(<void *>handle, "xla._CUSTOM_CALL_TARGET", NULL)


cdef Error *handle(CallFrame *frame) noexcept nogil:
    cdef Extension *extension = frame.extension
    cdef Metadata *metadata
    if extension is not NULL and extension.kind == EXTENSION_METADATA:
        metadata = (<MetadataExtension *>extension).metadata
        metadata.api_version.major, metadata.api_version.minor = API_MAJOR, API_MINOR
        return NULL
    if frame.stage != STAGE_EXECUTE:
        return NULL
    cdef Error *error
    enter()
    if is_closed():
        error = error_of(frame, b"convgrad_cy: Python is shutting down", ERROR_CANCELLED)
    else:
        error = run_with_gil(frame)
    leave()
    return error


cdef Error *run_with_gil(CallFrame *frame) noexcept with gil:
    try:
        run(frame)
        return NULL
    except MemoryError as error:
        return failed(frame, error, ERROR_RESOURCE_EXHAUSTED)
    except BaseException as error:
        return failed(frame, error, ERROR_INTERNAL)


cdef Error *failed(CallFrame *frame, error, int code) noexcept:
    """The exception as an error of XLA."""
    try:
        text = f"convgrad_cy: {type(error).__name__}: {error}".encode("utf-8", "replace")
    except BaseException:
        text = b"convgrad_cy: an exception without a text"
    return error_of(frame, text, code)


cdef Error *error_of(CallFrame *frame, const char *text, int code) noexcept nogil:
    """An error of XLA, which copies the text."""
    cdef ErrorArguments arguments
    arguments.struct_size, arguments.extension = sizeof(ErrorArguments), NULL
    arguments.message, arguments.code = text, code
    return frame.api.create_error(&arguments)


cdef object run(CallFrame *frame):
    global computed_calls
    cdef size_t bases[3]
    cdef size_t addresses[3]
    cdef Plan plan
    cdef int i
    if frame.arguments.count != 2 or frame.results.count != 1 or frame.attributes.count != 1:
        raise RuntimeError("a convolution has two operands, one result and one attribute")
    bases[0], bases[1] = <size_t>frame.arguments.buffers[0].data, <size_t>frame.arguments.buffers[1].data
    bases[2] = <size_t>frame.results.buffers[0].data
    text, number = frame.attributes.values[0].data[:frame.attributes.values[0].size], threads()
    plan = known.get((text, number))
    if plan is None:
        plan = make(text, number)
    for i in range(3):
        addresses[i] = bases[plan.operands[i]] + plan.offsets[i]
    plan.run(addresses[0], addresses[1], addresses[2])
    computed_calls += 1
