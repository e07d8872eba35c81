"""One operation of the real oneDNN Graph library, through its C interface and ctypes.

The PyPI package ``onednn`` computes on the CPU through SYCL. The Python of the environment in which it is installed
must run it, with the variables of `environment` set before the process starts.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np

STATUSES = {
    1: "out_of_memory",
    2: "invalid_arguments",
    3: "unimplemented",
    4: "last_impl_reached",
    5: "runtime_error",
    7: "invalid_graph",
    8: "invalid_graph_op",
    9: "invalid_shape",
    10: "invalid_data_type",
}
KINDS = {
    "Convolution": 13,
    "ConvolutionBackwardData": 14,
    "ConvolutionBackwardWeights": 15,
    "ConvTranspose": 16,
    "ConvTransposeBackwardData": 17,
    "ConvTransposeBackwardWeights": 18,
}
ATTRIBUTES = {
    "alpha": 0x01,
    "groups": 0x32,
    "dilations": 0x41,
    "dst_shape": 0x42,
    "output_padding": 0x45,
    "pads_begin": 0x46,
    "pads_end": 0x47,
    "strides": 0x4B,
    "weights_shape": 0x4C,
    "auto_pad": 0x81,
    "data_format": 0x83,
    "weights_format": 0x87,
}
DTYPES = {"float16": 1, "bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "float64": 7}

_CPU, _STRIDED, _UNDEFINED, _FUSION, _IN_ORDER = 1, 2, 0, 1, 1
_UNKNOWN = -(2**63)
_Dims = ctypes.c_int64 * 12


class _LogicalTensor(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_size_t),
        ("ndims", ctypes.c_int),
        ("dims", _Dims),
        ("dtype", ctypes.c_int),
        ("property", ctypes.c_int),
        ("layout_type", ctypes.c_int),
        ("strides", _Dims),
    )


class Refused(Exception):
    """A status other than success. ``str`` is its name."""


def environment(prefix):
    """The variables with which the Python of ``prefix`` finds the library and its CPU device."""
    library = Path(prefix) / "lib"
    return {"LD_LIBRARY_PATH": str(library), "OCL_ICD_FILENAMES": str(library / "libintelocl.so")}


def _built_driver():
    """The compiled driver, next to the library. The first use makes it."""
    prefix = Path(sys.prefix)
    target, source = prefix / "lib" / "convgrad_onednn_driver.so", Path(__file__).with_name("onednn_driver.cpp")
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-I", str(prefix / "include"), str(source)]
        subprocess.run([*command, str(prefix / "lib" / "libdnnl.so.3"), "-o", str(target)], check=True)
    return target


class Library:
    """The library of the running interpreter's environment, with one engine and one stream."""

    def __init__(self):
        self._c = ctypes.CDLL(str(Path(sys.prefix) / "lib" / "libdnnl.so.3"), ctypes.RTLD_GLOBAL)
        self._driver = ctypes.CDLL(str(_built_driver()))
        self._engine, self._stream = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("dnnl_engine_create", ctypes.byref(self._engine), _CPU, ctypes.c_size_t(0))
        self._do("dnnl_stream_create", ctypes.byref(self._stream), self._engine, _IN_ORDER)

    @property
    def version(self):
        self._c.dnnl_version.restype = ctypes.POINTER(ctypes.c_int)
        return ".".join(str(part) for part in self._c.dnnl_version()[:3])

    def _do(self, name, *arguments):
        status = getattr(self._driver if name.startswith("driver_") else self._c, name)(*arguments)
        if status:
            raise Refused(STATUSES.get(status, str(status)))

    def operation(self, kind):
        """A stand-in for the shim's class: constructed with attributes, called with arrays. Errors are `Refused`."""
        return lambda **attributes: lambda *arrays: self.run(kind, attributes, arrays)

    def run(self, kind, attributes, arrays):
        """The result of an operation, with the first array's dtype. `Refused` has the reason if there is none."""
        owned = []
        try:
            return self._run(kind, attributes, arrays, owned)
        finally:
            for destroy, handle in reversed(owned):
                getattr(self._c, destroy)(handle)

    def _run(self, kind, attributes, arrays, owned):
        inputs = [self._logical(i, array.shape, array.dtype) for i, array in enumerate(arrays)]
        # Without the rank, a failing shape inference ends in std::bad_alloc instead of a status.
        output = self._logical(len(inputs), (_UNKNOWN,) * arrays[0].ndim, arrays[0].dtype)

        op = self._new(owned, "dnnl_graph_op", ctypes.c_size_t(0), KINDS[kind], b"op")
        for name, value in attributes.items():
            self._set(op, ATTRIBUTES[name], value)
        for tensor in inputs:
            self._do("dnnl_graph_op_add_input", op, ctypes.byref(tensor))
        self._do("dnnl_graph_op_add_output", op, ctypes.byref(output))
        graph = self._new(owned, "dnnl_graph_graph", _CPU)
        self._do("driver_add_op", graph, op)
        self._do("dnnl_graph_graph_finalize", graph)
        self._do("dnnl_graph_graph_filter", graph, _FUSION)
        partition = ctypes.c_void_p()
        self._do("dnnl_graph_graph_get_partitions", graph, ctypes.c_size_t(1), ctypes.byref(partition))
        owned.append(("dnnl_graph_partition_destroy", partition))
        supported = ctypes.c_uint8()
        self._do("dnnl_graph_partition_is_supported", partition, ctypes.byref(supported))
        if not supported.value:
            raise Refused("unsupported")

        compiled = self._new(owned, "dnnl_graph_compiled_partition", partition)
        tensors = (ctypes.POINTER(_LogicalTensor) * len(inputs))(*map(ctypes.pointer, inputs))
        result = (ctypes.POINTER(_LogicalTensor) * 1)(ctypes.pointer(output))
        count = ctypes.c_size_t(len(inputs))
        self._do("driver_compile", partition, compiled, count, tensors, result, self._engine)
        made = _LogicalTensor()
        name = "dnnl_graph_compiled_partition_query_logical_tensor"
        self._do(name, compiled, ctypes.c_size_t(len(inputs)), ctypes.byref(made))
        if min(made.dims[: made.ndims], default=0) < 0:
            raise Refused("compiled for a negative extent")
        out = np.empty(made.dims[: made.ndims], arrays[0].dtype)
        out.view(np.uint8).fill(0x7F)  # an element that the library does not write must not look like a zero

        arguments = []
        for tensor, array in zip([*inputs, made], [*arrays, out], strict=True):
            handle = ctypes.c_void_p(array.ctypes.data)
            arguments.append(self._new(owned, "dnnl_graph_tensor", ctypes.byref(tensor), self._engine, handle))
        many = (ctypes.c_void_p * len(inputs))(*[handle.value for handle in arguments[:-1]])
        single = (ctypes.c_void_p * 1)(arguments[-1].value)
        self._do("driver_execute", compiled, self._stream, count, many, single)
        self._do("dnnl_stream_wait", self._stream)
        return out

    def _new(self, owned, kind, *arguments):
        handle = ctypes.c_void_p()
        self._do(f"{kind}_create", ctypes.byref(handle), *arguments)
        owned.append((f"{kind}_destroy", handle))
        return handle

    def _logical(self, number, shape, dtype):
        tensor = _LogicalTensor()
        arguments = (DTYPES[dtype.name], len(shape), _Dims(*shape), _STRIDED, _UNDEFINED)
        name = "dnnl_graph_logical_tensor_init_with_dims"
        self._do(name, ctypes.byref(tensor), ctypes.c_size_t(number), *arguments)
        return tensor

    def _set(self, op, name, value):
        """Set an attribute: a list is s64[], an int s64, a str a string, a list of floats f32[], a float f32."""
        if isinstance(value, str):
            text = value.encode()
            self._do("dnnl_graph_op_set_attr_str", op, name, text, ctypes.c_size_t(len(text)))
            return
        many = isinstance(value, list)
        values = value if many else [value]
        real = any(isinstance(member, float) for member in values)
        array = ((ctypes.c_float if real else ctypes.c_int64) * len(values))(*values)
        # A length of 0 means one single number to the library, and a null pointer with it an empty list.
        count = ctypes.c_size_t(len(values) if many else 0)
        kind = "f32" if real else "s64"
        self._do(f"dnnl_graph_op_set_attr_{kind}", op, name, array if values else None, count)
