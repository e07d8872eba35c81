"""JAX: ``lax.conv_general_dilated`` and its transposes, each compiled alone."""

import jax
import numpy as np
from jax import lax

from bench.case import Unsupported, activation_in, filter_in, written_plainly

AXES = {1: "W", 2: "HW", 3: "DHW"}


class Library:
    allocates_result = True
    refusals = (RuntimeError, NotImplementedError, TypeError)

    def __init__(self, threads):
        # JAX has no setting for threads: it takes as many as the process has processors, and worker.py has set these.
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        self.version = jax.__version__

    def operation(self, case, kernel, x, w, y):
        if case.dtype == "int32" and kernel != "fprop":
            raise Unsupported("JAX has no gradients of integers")
        axes = AXES[case.rank]
        names = (
            (f"N{axes}C", f"{axes}IO", f"N{axes}C") if case.channels_last else (f"NC{axes}", f"OI{axes}", f"NC{axes}")
        )

        def conv(x, w):
            return lax.conv_general_dilated(
                x,
                w,
                case.stride,
                case.padding,
                rhs_dilation=case.dilation,
                dimension_numbers=names,
                feature_group_count=case.groups,
            )

        def tensor(array, in_layout=activation_in):
            return jax.numpy.asarray(in_layout(case.layout, array), dtype=case.dtype)

        if kernel == "fprop":
            function, operands = conv, (tensor(x), tensor(w, filter_in))
        elif kernel == "dgrad":
            wanted = jax.ShapeDtypeStruct(activation_in(case.layout, x).shape, case.dtype)
            operands = tensor(w, filter_in), tensor(y)

            def function(w, y):
                return jax.linear_transpose(lambda x: conv(x, w), wanted)(y)[0]
        else:
            wanted = jax.ShapeDtypeStruct(filter_in(case.layout, w).shape, case.dtype)
            operands = tensor(x), tensor(y)

            def function(x, y):
                return jax.linear_transpose(lambda w: conv(x, w), wanted)(y)[0]

        compiled = jax.jit(function).lower(*operands).compile()
        return lambda: compiled(*operands).block_until_ready()

    def plain(self, case, kernel, result):
        return written_plainly(case.layout, kernel, np.asarray(result))
