"""Results of one process, with the settings of its environment: ``python child.py OUT.npz``."""

import sys

import numpy as np
from operations import DTYPES, EXACT, OPERATIONS, Tensors, bits, draw_integers, dtype_of, real_tensors
from problems import PROBLEMS

#: Small problems, and some that are large enough for several threads.
PROBLEMS_IN_CHILDREN = [
    PROBLEMS[name]
    for name in (
        "1d_groups",
        "2d_same",
        "2d_1x1_odd_channels",
        "2d_first_layer",
        "2d_stride2_dilation3",
        "2d_groups3_stride2",
        "2d_depthwise_many",
        "2d_channels130_out",
        "2d_channels65",
        "2d_depth1200",
        "2d_positions_1445",
        "2d_blocks",
        "2d_blocks_stride2",
        "3d_mixed_stride",
    )
]
NAMES = ("conv", "conv_backward_data", "conv_backward_filter")


def results():
    """(kind of data, operation, dtype, problem) and the result's array, for all of them."""
    for problem in PROBLEMS_IN_CHILDREN:
        for dtype in DTYPES:
            integers = draw_integers(problem, EXACT[dtype])
            data = {
                "integers": Tensors(*(array.astype(dtype_of(dtype)) for array in integers)),
                "reals": real_tensors(problem, dtype),
            }
            for kind, tensors in data.items():
                for name in NAMES:
                    yield (kind, name, dtype, problem.name), OPERATIONS[name].call(problem, tensors)


def as_bytes():
    """The results as byte arrays, under names that a file can hold: .npz has no bfloat16."""
    return {"/".join(key): np.frombuffer(bits(array), np.uint8) for key, array in results()}


if __name__ == "__main__":
    from convgrad_cy import cpu

    np.savez(sys.argv[1], isa=cpu.isa, **as_bytes())
