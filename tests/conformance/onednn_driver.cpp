// The calls of oneDNN Graph's C interface from which C++ exceptions escape. ctypes cannot catch one, so here each
// becomes the status that it carries.
//
// g++ -std=c++17 -O1 -shared -fPIC -I PREFIX/include onednn_driver.cpp -o onednn_driver.so PREFIX/lib/libdnnl.so.3

#include <new>

#include "oneapi/dnnl/dnnl_common.hpp"
#include "oneapi/dnnl/dnnl_graph.h"

template <typename Call>
static dnnl_status_t guarded(Call call) {
    try {
        return call();
    } catch (const dnnl::error &error) {
        return error.status;
    } catch (const std::bad_alloc &) {
        return dnnl_out_of_memory;
    } catch (...) {
        return dnnl_runtime_error;
    }
}

extern "C" dnnl_status_t driver_add_op(dnnl_graph_graph_t graph, dnnl_graph_op_t op) {
    return guarded([=] { return dnnl_graph_add_op(graph, op); });
}

extern "C" dnnl_status_t driver_compile(dnnl_graph_partition_t partition, dnnl_graph_compiled_partition_t compiled,
        size_t inputs, const dnnl_graph_logical_tensor_t **in, const dnnl_graph_logical_tensor_t **out,
        dnnl_engine_t engine) {
    return guarded([=] { return dnnl_graph_partition_compile(partition, compiled, inputs, in, 1, out, engine); });
}

extern "C" dnnl_status_t driver_execute(const_dnnl_graph_compiled_partition_t compiled, dnnl_stream_t stream,
        size_t inputs, const_dnnl_graph_tensor_t *in, const_dnnl_graph_tensor_t *out) {
    return guarded([=] { return dnnl_graph_compiled_partition_execute(compiled, stream, inputs, in, 1, out); });
}
