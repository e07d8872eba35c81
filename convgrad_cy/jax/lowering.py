"""The rule that lowers ``conv_general_dilated`` to a call of our FFI handler, or passes it on to JAX's own rule."""

import atexit
import logging
from collections import Counter

import jax
import numpy as np
from jax.extend.core.primitives import conv_general_dilated_p
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from .. import cpu
from .._xla_ffi import close, handler
from ..dtypes import BFLOAT16_BITS
from ..settings.threads import get_num_threads
from . import plans
from .reading import Declined, order_of_filter, order_of_result, read

logger = logging.getLogger("convgrad_cy.jax")

TARGET = "convgrad_cy_convolution"

#: Name of a type in JAX -> the type of our kernels. XLA computes int32, as it may add in another type than ours.
_DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": BFLOAT16_BITS,
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}

#: Function -> convolutions that were lowered to it, and reason -> convolutions that XLA computes.
LOWERED, PASSED_ON = Counter(), Counter()


def _check_context(context):
    """Decline a program that is exported, is for several platforms, or is partitioned between devices by XLA."""
    if len(context.platforms) != 1:
        raise Declined("a program for several platforms")
    if context.lowering_parameters.for_export:
        raise Declined("an exported program")
    axes = context.axis_context
    mesh = getattr(axes, "mesh", None)
    if mesh is not None:  # inside shard_map with all axes manual, each device runs a program for its own part
        is_partitioned = mesh.size > 1 and not set(mesh.axis_names) <= set(axes.manual_axes)
    else:
        is_partitioned = getattr(axes, "num_devices", 1) > 1
    if is_partitioned:
        raise Declined("a program that XLA partitions between devices: use shard_map")


def _check_types(lhs, rhs, out, preferred):
    if len({lhs.dtype, rhs.dtype, out.dtype}) > 1 or preferred not in (None, lhs.dtype):
        raise Declined(f"operands of {lhs.dtype} and {rhs.dtype} with a result of {out.dtype}")
    if lhs.dtype.name not in _DTYPES:
        raise Declined(f"operands of {lhs.dtype}")
    units = cpu.units_of_frameworks(lhs.dtype.name)
    if units:
        raise Declined(f"operands of {lhs.dtype}, which XLA multiplies with {units} here")
    if not all(type(size) is int for operand in (lhs, rhs, out) for size in operand.shape):
        raise Declined("symbolic shapes")


def _plan(ctx, algorithm, params):
    """The ``Reading`` of a convolution, and the text of its plan. The plan is made, so that errors appear here."""
    lhs, rhs, out = *ctx.avals_in, *ctx.avals_out
    _check_context(ctx.module_context)
    _check_types(lhs, rhs, out, params["preferred_element_type"])
    try:
        reading = read((lhs.shape, rhs.shape, out.shape), _DTYPES[lhs.dtype.name], algorithm, params)
        text = plans.text_of(reading)
        plans.make(text, get_num_threads())
    except (TypeError, ValueError, MemoryError) as error:
        raise Declined(str(error)) from error
    return reading, text


def rule(algorithm, fallback):
    """The lowering rule for an algorithm (None: the default one); ``fallback``: JAX's own rule."""

    def lower(ctx, lhs, rhs, **params):
        try:
            reading, text = _plan(ctx, algorithm, params)
        except Declined as declined:
            reason = str(declined)
        except Exception as error:  # an error of ours must not stop a program that XLA can compile
            reason = f"an internal error, {type(error).__name__}: {error}"
            logger.exception("a convolution could not be planned; XLA computes it")
        else:
            LOWERED[reading.function.name] += 1
            return [_call(ctx, reading, text, lhs, rhs, params["dimension_numbers"])]
        PASSED_ON[reason] += 1
        logger.debug("a convolution was left to XLA: %s", reason)
        return fallback(ctx, lhs, rhs, **params)

    return lower


def _type_of_shape(value, shape):
    """The type of a tensor of this shape with the elements of ``value``."""
    return ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)


def _transpose(value, order):
    return stablehlo.transpose(value, ir.DenseI64ArrayAttr.get(order))


def _reshape(value, shape):
    return stablehlo.reshape(_type_of_shape(value, shape), value)


def _call(ctx, reading, text, lhs, rhs, numbers):
    """The StableHLO operations that call the handler. With groups, operands or the result may be transposed."""
    (lhs_aval, rhs_aval), (out_aval,) = ctx.avals_in, ctx.avals_out
    result_aval = out_aval
    if reading.filter_groups > 1:
        first, split, second, merged = order_of_filter(rhs_aval.shape, numbers.rhs_spec, reading.filter_groups)
        rhs = _reshape(_transpose(_reshape(_transpose(rhs, first), split), second), merged)
        rhs_aval = jax.core.ShapedArray(merged, rhs_aval.dtype)
    if reading.result_groups > 1:
        result_aval = jax.core.ShapedArray(reading.views[2].shape, out_aval.dtype)
    inner = ctx.replace(avals_in=[lhs_aval, rhs_aval], avals_out=[result_aval])
    (result,) = jax.ffi.ffi_lowering(TARGET)(inner, lhs, rhs, plan=text.decode())
    if reading.result_groups > 1:
        split, first, merged, second = order_of_result(out_aval.shape, numbers.out_spec, reading.result_groups)
        result = _transpose(_reshape(_transpose(_reshape(result, split), first), merged), second)
    return result


jax.ffi.register_ffi_target(TARGET, handler(), platform="cpu")
atexit.register(close)  # at exit, XLA's threads may still run a program that the caller has not waited for


def current_rule():
    """The rule that lowers convolutions for the CPU now: JAX's, ours, or another package's."""
    # JAX has no public function for this. In JAX 0.7 the table has functions; in later releases, objects with the
    # attribute ``rule``.
    own = mlir._platform_specific_lowerings["cpu"].get(conv_general_dilated_p)
    own = own or mlir._lowerings[conv_general_dilated_p]
    return getattr(own, "rule", own)


def register(rule):
    """Make ``rule`` lower convolutions for the CPU. Functions that are compiled already will be compiled again."""
    mlir.register_lowering(conv_general_dilated_p, rule, platform="cpu")
    jax.clear_caches()
