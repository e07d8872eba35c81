# NumPy arrays of memory that another object owns. A module that includes this must call NumPy's import_array.

cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(  # keeps a reference to dtype
        PyTypeObject *kind, cnp.dtype dtype, int axes, cnp.npy_intp *extents, cnp.npy_intp *steps, void *data,
        int flags, PyObject *like,
    )

cdef enum:
    MOST_AXES = 64  # greatest number of axes of NumPy's arrays


cdef inline object array_at(size_t address, tuple shape, tuple strides, Py_ssize_t unit, cnp.dtype dtype):
    """A writeable array at an address. ``strides`` are in units of ``unit`` bytes."""
    cdef cnp.npy_intp extents[MOST_AXES]
    cdef cnp.npy_intp steps[MOST_AXES]
    cdef int axis, axes = len(shape)
    if axes > MOST_AXES or len(strides) != axes:
        raise ValueError(f"an array must have at most {MOST_AXES} axes with a stride each, not {shape} and {strides}")
    for axis in range(axes):
        extents[axis], steps[axis] = shape[axis], unit * <cnp.npy_intp>strides[axis]
    Py_INCREF(dtype)
    return PyArray_NewFromDescr(
        <PyTypeObject *>cnp.ndarray, dtype, axes, extents, steps, <void *>address, cnp.NPY_ARRAY_WRITEABLE, NULL
    )
