#include "simulator.hpp"

// g++ -fsanitize=alignment calls these. Without its own library, a misaligned access is an error of the thread.
#if !defined(__SANITIZE_ADDRESS__)
namespace
{
struct Misalignment {
    const char *file;
    uint32_t line, column;
};
} // namespace
extern "C" void __ubsan_handle_type_mismatch_v1_abort(void *data, void *address)
{
    const auto &place = *static_cast<const Misalignment *>(data);
    simulator::fail("misaligned access to %p, %s line %u", address, place.file, unsigned(place.line));
}
extern "C" void __ubsan_handle_type_mismatch_v1(void *data, void *address)
{
    __ubsan_handle_type_mismatch_v1_abort(data, address);
}
#endif
