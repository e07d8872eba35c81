// The interface between Python (executor.py) and a compiled kernel: C functions that run it, and that return its needs.
// The guard also works in a precompiled header.
#ifndef SIMULATOR_LAUNCH
#define SIMULATOR_LAUNCH

#include "simulator.hpp"

// The linker names the ends of these sections, if there are any.
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_simulator_shared[],
    __stop_simulator_shared[];
extern "C" __attribute__((weak, visibility("hidden"))) const int64_t __start_simulator_threads[],
    __stop_simulator_threads[];

namespace simulator
{
enum Schedule : int32_t { ASCENDING, DESCENDING, RANDOM };

struct Launch { // executor.py has the same fields
    dim3 grid, block;
    int32_t schedule, poison;
    uint64_t seed;
    int64_t shared;
    int64_t pointer_count, argument_count;
    void *const *pointers;
    const int64_t *arguments;
    int64_t map_bytes; // of tensor maps, if the kernel has some
    const void *maps;
    unsigned char *static_begin, *static_end; // the kernel's static __shared__ variables; Python does not set them
};

// Runs all blocks. Returns null, or an error message.
const char *run(const Launch &launch, void (*body)(const Launch &));

// A kernel's parameters are pointers, perhaps a struct of tensor maps, and one struct of 64-bit integers.
template <auto kernel> struct Kernel;
template <class... Parameters, void (*kernel)(Parameters...)> struct Kernel<kernel> {
    using Types = std::tuple<Parameters...>;
    static constexpr size_t pointers = (size_t(std::is_pointer_v<Parameters>) + ...);
    using Maps = std::tuple_element_t<pointers, Types>;
    using Arguments = std::tuple_element_t<sizeof...(Parameters) - 1, Types>;
    static constexpr bool has_maps = sizeof...(Parameters) - pointers == 2;
    static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) % 8 == 0);

    template <size_t... i> static void call(const Launch &launch, std::index_sequence<i...>)
    {
        Arguments arguments;
        std::memcpy(&arguments, launch.arguments, sizeof arguments);
        if constexpr (has_maps) {
            Maps maps;
            std::memcpy(&maps, launch.maps, sizeof maps);
            kernel(static_cast<std::tuple_element_t<i, Types>>(launch.pointers[i])..., maps, arguments);
        } else {
            kernel(static_cast<std::tuple_element_t<i, Types>>(launch.pointers[i])..., arguments);
        }
    }
    static void body(const Launch &launch)
    {
        call(launch, std::make_index_sequence<pointers>());
    }
    static const char *start(const Launch &launch)
    {
        if (launch.pointer_count != int64_t(pointers))
            return "the launch has not as many pointers as the kernel has pointer parameters";
        if (launch.argument_count * 8 != int64_t(sizeof(Arguments)))
            return "the launch has not as many arguments as the kernel's Arguments has fields";
        if (launch.map_bytes != int64_t(has_maps ? sizeof(Maps) : 0))
            return "the launch has not as many tensor maps as the kernel";
        Launch known = launch;
        known.static_begin = __start_simulator_shared;
        known.static_end = __stop_simulator_shared;
        return run(known, body);
    }
};
} // namespace simulator

#define SIMULATOR_C extern "C" __attribute__((visibility("default")))
// Bytes of the text's static __shared__ variables, and the smallest of its launch bounds, or 0 if it has none.
#define SIMULATOR_EXPORT(kernel)                                                                                       \
    SIMULATOR_C const char *simulator_start(const simulator::Launch *launch)                                           \
    {                                                                                                                  \
        return simulator::Kernel<&kernel>::start(*launch);                                                             \
    }                                                                                                                  \
    SIMULATOR_C int64_t simulator_static_shared()                                                                      \
    {                                                                                                                  \
        return __stop_simulator_shared - __start_simulator_shared;                                                     \
    }                                                                                                                  \
    SIMULATOR_C int64_t simulator_most_threads()                                                                       \
    {                                                                                                                  \
        int64_t least = 0;                                                                                             \
        for (const int64_t *bound = __start_simulator_threads; bound < __stop_simulator_threads; ++bound)              \
            least = least && least < *bound ? least : *bound;                                                          \
        return least;                                                                                                  \
    }
#endif
