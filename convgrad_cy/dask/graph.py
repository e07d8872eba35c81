"""The graphs of the functions on Dask arrays: checks of the chunks, halos, blocks, and the tree of a filter's sum."""

from functools import partial, reduce
from itertools import accumulate
from operator import add

import numpy as np
from dask import array as da
from dask.array.utils import meta_from_array

from .. import blocks
from ..arrays import CUPY, NUMPY, is_cupy_array
from ..calls import checked
from ..checks.keywords import shown
from ..dtypes import lookup
from ..problem import dilated_size

#: Partial sums that one task adds: along the batch, and along each spatial axis.
_IMAGES_OF_A_SUM, _BLOCKS_OF_A_SUM = 4, 2


def data(function, source, w, asked, options):
    """The Dask array of `conv` or `conv_backward_data`."""
    geometry, options, library = _checked(function, source, w, asked, options)
    w = w if isinstance(w, da.Array) else da.from_array(w, chunks=-1, asarray=False)
    _check_one_chunk("w", w, range(w.ndim))
    problem, order, backward = geometry.problem, geometry.views[0][0], function.name != "conv"
    with_halo, rows, sizes = _cut(function.names[0], source, order, problem, backward)
    channels = problem.groups * problem.channels(backward)[1]
    is_exact = library is NUMPY and options.algorithm == "direct" and with_halo is not source
    whole = problem if is_exact else None
    call = partial(blocks.data_block, name=function.name, options=options, order=order, channels=channels, whole=whole)
    axes, dtype = range(source.ndim), source.dtype.newbyteorder("=")
    return da.blockwise(
        partial(_block, call), axes, with_halo, axes, w, range(w.ndim, 2 * w.ndim), *rows, token=function.name,
        adjust_chunks=sizes | {order[1]: (channels,)}, dtype=dtype, meta=meta_from_array(source._meta, dtype=dtype),
        align_arrays=False, concatenate=True,
    )  # fmt: skip


def filter_gradient(function, x, dy, asked, options):
    """The Dask array of `conv_backward_filter`: a sum of partial results, one for each block."""
    geometry, options, _ = _checked(function, x, dy, asked, options)
    order, (outs, ins, *taps) = geometry.views[0][0], geometry.views[1][0]
    _check_one_chunk("dy", dy, order[1:2])
    with_halo, rows, sizes = _cut("x", x, order, geometry.problem, False)
    for axis, wanted in {order[0]: x.chunks[order[0]], **sizes}.items():
        if dy.chunks[axis] != wanted:
            found, wanted = shown(dy.chunks[axis]), shown(wanted)
            raise ValueError(f"dy must have the chunks {wanted} along axis {axis}, to match x, not {found}")
    call = partial(blocks.filter_block, options=options, order=order, w_shape=geometry.shape)
    # Numbers that name axes: x has the first ones. Other axes of dw have the next ones.
    axes, summed = range(x.ndim), (order[0], *order[2:])
    of_w = {axis: x.ndim + axis for axis in axes} | {ins: order[1]}
    of_dy = [of_w[outs] if axis == order[1] else axis for axis in axes]
    dtype = np.dtype(lookup(x.dtype).compute)
    parts = da.blockwise(
        partial(_partial_sum, call), [*summed, *(of_w[axis] for axis in axes)], with_halo, axes, dy, of_dy, *rows,
        token=function.name, new_axes={of_w[axis]: geometry.shape[axis] for axis in taps},
        adjust_chunks=dict.fromkeys(summed, 1) | {order[1]: (geometry.shape[ins],)},
        dtype=dtype, meta=meta_from_array(x._meta, x.ndim + len(summed), dtype), align_arrays=False, concatenate=True,
    )  # fmt: skip
    leading = range(len(summed))
    total = da.reduction(
        parts, _as_it_is, _sum, axis=tuple(leading), concatenate=False, dtype=dtype, name=function.name,
        split_every=dict.fromkeys(leading, _BLOCKS_OF_A_SUM) | {0: _IMAGES_OF_A_SUM},
        meta=meta_from_array(x._meta, x.ndim, dtype),
    )  # fmt: skip
    return total.astype(x.dtype.newbyteorder("="))


def _block(call, first, second, *rows):
    return call(first, second, [blocks.AxisBlock(*row.ravel().tolist()) for row in rows])


def _partial_sum(call, first, second, *rows):
    return _block(call, first, second, *rows)[(None,) * (len(rows) + 1)]


def _as_it_is(part, axis, keepdims):
    return part


def _sum(parts, axis, keepdims):
    """The sum of nested lists of partial results, in their order; every partial result has the axes ``axis``."""
    total = reduce(add, _flat(parts))
    return total if keepdims else total.reshape(total.shape[len(axis) :])


def _flat(parts):
    if isinstance(parts, list):
        for part in parts:
            yield from _flat(part)
    else:
        yield parts


def _checked(function, first, second, asked, options):
    """The geometry of a legal call, its keywords with the algorithm of all blocks, and the library of the chunks."""
    (name, other), is_lazy = function.names, isinstance(second, da.Array)
    for named, array in {name: first, **({other: second} if other == "dy" else {})}.items():
        if not isinstance(array, da.Array):
            hint = "dask.array.from_array makes it one"
            raise TypeError(f"{named} must be a dask.array.Array, not {type(array).__name__}: {hint}")
    library = CUPY if is_cupy_array(first._meta) else NUMPY
    library.plain(name, first._meta, None)
    library.plain(other, second._meta if is_lazy else second, name)
    for named, array in zip(function.names, (first, second), strict=True):
        if any(size != size for size in array.shape):  # nan
            raise ValueError(
                f"{named} must have known chunks, not the shape {array.shape}: compute_chunk_sizes finds them"
            )
    geometry = checked(library, function, first, second, asked, options)
    algorithm = geometry.algorithm
    if library is NUMPY:
        algorithm = blocks.algorithm_of(function, geometry, (first.shape, second.shape), first.dtype)
    return geometry, options._replace(algorithm=algorithm), library


def _check_one_chunk(name, array, axes):
    for axis in axes:
        if array.numblocks[axis] > 1:
            raise ValueError(f"{name} must have one chunk along axis {axis}, not {shown(array.chunks[axis])}")


def _cut(name, array, order, problem, backward):
    """The array with halos, the blocks of each spatial axis as arguments of ``blockwise``, and the result's chunks.

    A block is a row of an array. Negative numbers name the axes of its fields.
    The array itself is returned if no spatial axis has several chunks.
    """
    _check_one_chunk(name, array, order[1:2])
    halo_of, blocks_of = (
        (blocks.backward_halo, blocks.backward_blocks) if backward else (blocks.forward_halo, blocks.forward_blocks)
    )
    depths, rows, sizes, geometry = {}, [], {}, [*problem.axes][5 - array.ndim :]
    for axis, sides in zip(order[2:], geometry, strict=True):
        chunks = array.chunks[axis]
        found = [*blocks_of((0, *accumulate(chunks)), *sides)]
        sizes[axis] = tuple(block.size for block in found)
        rows += [da.from_array(np.array(found), chunks=(1, -1)), (axis, -1 - axis)]
        if len(chunks) > 1:
            depths[axis] = halo_of(*sides)
            _check_chunks(name, axis, chunks, sizes[axis], depths[axis], sides, backward)
    if not depths:
        return array, rows, sizes
    return da.overlap.overlap(array, depths, "none", allow_rechunk=False), rows, sizes


def _check_chunks(name, axis, chunks, sizes, halo, sides, backward):
    """Check the chunks of an axis, whose blocks have results of ``sizes``."""
    x, y, kernel, stride, dilation, pad_begin = sides
    extent = dilated_size(kernel, dilation)
    padding = max(pad_begin, (y - 1) * stride + extent - x - pad_begin)
    if padding >= extent:
        less = f"less than the extent {extent} of the filter along axis {axis}, which has several chunks"
        raise ValueError(f"padding must be {less}, not {padding}")
    wanted = None
    if not backward and any(size % stride for size in chunks[:-1]):
        wanted = f"that are multiples of the stride {stride}, except the last"
    elif min(chunks) < max(halo):
        wanted = f"of at least {max(halo)}, the halo of the filter"
    elif 0 in sizes:  # Dask's own functions fail on empty chunks
        wanted = f"that each have {'input' if backward else 'output'}"
    if wanted:
        raise ValueError(f"{name} must have chunks along axis {axis} {wanted}, not {shown(chunks)}")
