"""The judgement of a drawn call: its result or its exception, and its arrays afterwards."""

import numpy as np
from drawn_calls import exchange
from operations import Tensors, reference_kernel, to_formats

KERNEL = {"y": "fprop", "x": "dgrad", "w": "wgrad"}
#: Half a unit of the stored type, and of the type of sums.
STORED = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}
SUMMED = STORED | {"float16": 2**-24, "bfloat16": 2**-24}
#: Error relative to the greatest element, except for the direct algorithm.
CONTRACT = {"float16": 2e-5, "bfloat16": 2e-5, "float32": 2e-5, "float64": 0}
#: The distance between the least numbers of a type, if results come near them.
LEAST = {"float16": 2**-24}


def _arranged(call, part, array):
    """A result in NCX or OIX as the call returns it."""
    if part != "w":
        return to_formats(part, array, call.formats[0], "OIX")
    if call.formats[1] == "OXI":
        return np.moveaxis(array, 1, -1)
    array = to_formats(part, array, "NCX", call.formats[1])
    return exchange(array, call.formats[1]) if call.exchanged else array


def expected(call, part, tensors):
    """The reference's result in float64 or int64."""
    return reference_kernel(KERNEL[part], call.problem, Tensors(tensors["x"], tensors["w"], tensors["y"]))


def bound(call, part, tensors, exact, dtype):
    """Bound on the error of each element."""
    name = dtype.name
    absolute = {key: abs(array) for key, array in tensors.items()}
    terms = call.problem.longest_sum
    limit = (terms + 1) * 2 * SUMMED[name] * expected(call, part, absolute) + 2 * STORED[name] * abs(exact)
    limit += LEAST.get(name, 0)
    return limit if call.exact else limit + CONTRACT[name] * abs(exact).max(initial=0)


def _listed(out):
    return out if isinstance(out, list) else [out]


def complaint_of_result(call, result):
    """The fault in the results of a legal call, or None."""
    results = result if isinstance(result, tuple) else (result,)
    if call.out is not None and any(a is not b for a, b in zip(results, _listed(call.out), strict=False)):
        return "the result is not out"
    if len(results) != len(call.makes):
        return f"{len(results)} results"
    for part, got in zip(call.makes, results, strict=True):
        if said := _complaint(call, part, got if call.out is None else np.asarray(got)):
            return f"{part}: {said}"
    return None


def _complaint(call, part, got):
    tensors = call.tensors
    dtype = tensors["x"].dtype
    if type(got) is not np.ndarray or got.dtype != dtype:
        return f"{type(got).__name__} of {getattr(got, 'dtype', None)}"
    if dtype.kind == "c":  # both parts are sums of two real results
        return _complaint_of_complex(call, part, got)
    exact = expected(call, part, tensors)
    shaped = _arranged(call, part, exact)
    if got.shape != shaped.shape:
        return f"the shape {got.shape}, not {shaped.shape}"
    if dtype.kind == "i":
        return None if (got == shaped.astype(np.int32)).all() else "other integers"
    limit = _arranged(call, part, bound(call, part, tensors, exact, dtype))
    error = abs(got.astype(np.float64) - shaped)
    return (
        None if (error <= limit).all() else f"an error of {error.max()}, where {limit[error > limit].min()} is allowed"
    )


def _complaint_of_complex(call, part, got):
    one, other = (key for key in "xwy" if key != part)
    tensors, total, size = call.tensors, 0, 0
    real = np.dtype(tensors["x"].real.dtype)
    for first, second, unit in (("real", "real", 1), ("imag", "imag", -1), ("real", "imag", 1j), ("imag", "real", 1j)):
        each = {one: getattr(tensors[one], first), other: getattr(tensors[other], second), part: tensors[part].real}
        exact = expected(call, part, each)
        total, size = total + unit * exact, size + bound(call, part, each, exact, real)
    shaped, limit = _arranged(call, part, total), _arranged(call, part, 2 * size)
    if got.shape != shaped.shape:
        return f"the shape {got.shape}, not {shaped.shape}"
    return None if (abs(got - shaped) <= limit).all() else "another result"
