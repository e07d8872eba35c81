"""Small calls of every operation and type on a GPU, for compute-sanitizer: python -m bench.gpu_small [FAMILY].

With a family of kernels, that one takes all calls that it can, also those for which another would be preferred. Results
are compared with the CPU's. Arrays are allocated one by one, so that what lies beyond an array is nobody's memory.
"""

import os
import sys

import numpy as np

#: (x, w, stride, padding, dilation, groups): a tail in all sizes; stride phases; groups; depthwise; three axes.
PROBLEMS = (
    ((2, 40, 13, 11), (44, 40, 3, 3), 1, 1, 1, 1),
    ((2, 24, 12, 9), (20, 24, 4, 4), 2, 1, 1, 1),
    ((1, 16, 9, 9), (24, 4, 3, 3), 2, 2, 2, 4),
    ((2, 36, 10, 10), (36, 1, 3, 3), 1, 1, 1, 36),
    ((1, 17, 40), (9, 17, 5), 3, 2, 1, 1),
    ((1, 6, 6, 5, 7), (7, 6, 3, 3, 2), 1, 1, 1, 1),
)
DTYPES = ("float16", "bfloat16", "float32", "float64", "int32")


def dtype_of(name):
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


def results(x, w, dy, **keywords):
    """The three kernels, whatever library the arrays are of."""
    import convgrad_cy as cg

    return {
        "fprop": cg.conv(x, w, **keywords),
        "dgrad": cg.conv_backward_data(dy, w, x.shape, **keywords),
        "wgrad": cg.conv_backward_filter(x, dy, w.shape, **keywords),
    }


def wrong_calls(problem, dtype, to_device, to_host):
    """The calls on the GPU whose result is not the CPU's: integers are exact on both."""
    import convgrad_cy as cg

    x_shape, w_shape, stride, padding, dilation, groups = problem
    random = np.random.default_rng(0)
    x, w = (random.integers(-3, 4, shape).astype(dtype) for shape in (x_shape, w_shape))
    keywords = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    dy = random.integers(-3, 4, cg.conv(x, w, **keywords).shape).astype(dtype)
    expected = results(x, w, dy, algorithm="direct", **keywords)
    last = [*range(x.ndim)]
    last.append(last.pop(1))
    for order in (range(x.ndim), last):
        there = [to_device(array.transpose(order)).transpose(*np.argsort(order)) for array in (x, w, dy)]
        for name, result in results(*there, **keywords).items():
            if not np.array_equal(to_host(result).astype(np.float64), expected[name].astype(np.float64)):
                yield f"{name} of {problem}, {dtype}, axes in the order {tuple(order)}"


def main(family=""):
    import cupy

    os.environ["CONVGRAD_CY_GPU"] = family
    from convgrad_cy.gpu import mma

    if family:
        mma.suits = mma.can
    cupy.cuda.set_allocator(None)

    def to_device(array):
        data = cupy.asarray(np.ascontiguousarray(array).reshape(-1).view(np.uint8)).data
        return cupy.ndarray(array.shape, array.dtype, data)

    def to_host(array):
        return cupy.ndarray((array.nbytes,), np.uint8, array.data).get().view(array.dtype).reshape(array.shape)

    wrong = [
        call
        for problem in PROBLEMS
        for dtype in map(dtype_of, DTYPES)
        for call in wrong_calls(problem, dtype, to_device, to_host)
    ]
    print(*wrong, sep="\n", file=sys.stderr)
    sys.exit(f"{len(wrong)} calls were wrong" if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
