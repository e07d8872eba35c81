"""A call as calls on blocks of its arrays, for arrays that are too large for one call. It knows no engine.

The algorithm is chosen once, for the whole problem. If it is "direct", the blocks of an output or of a data gradient
have the bits of one call.
"""

from contextlib import contextmanager
from threading import Lock

import numpy as np

from .. import api
from ..arrays import NUMPY, zeros
from ..calls import checked
from ..calls.prepared import cpu_arguments, run_part
from ..checks import functions
from ..cpu import families, task_of, without_unreached_taps
from ..dtypes import lookup
from ..settings.threads import get_num_threads, num_threads
from .axes import AxisBlock as AxisBlock
from .axes import backward_blocks as backward_blocks
from .axes import backward_halo as backward_halo
from .axes import forward_blocks as forward_blocks
from .axes import forward_halo as forward_halo

_lock = Lock()
_running = 0  # blocks that this process computes now


@contextmanager
def _shared_threads():
    """Let the blocks that this process computes at one time share its threads."""
    global _running
    with _lock:
        _running += 1
        share = max(1, get_num_threads() // _running)
    try:
        with num_threads(share):
            yield
    finally:
        with _lock:
            _running -= 1


def algorithm_of(function, geometry, shapes, dtype):
    """The algorithm of all blocks of a call on this CPU: "auto" becomes "winograd" if the whole takes it, or "direct".

    ``shapes`` are the shapes of the call's two arrays.
    """
    if geometry.algorithm != "auto":
        return geometry.algorithm
    if not geometry.problem.has_products:
        return "direct"
    arrays = [np.broadcast_to(np.empty((), dtype), shape) for shape in (*shapes, geometry.shape)]  # one element each
    _, family = families.chosen(without_unreached_taps(task_of(*cpu_arguments(function, geometry, arrays))))
    return "winograd" if families.name_of(family) == "winograd" else "direct"


def _read(source, axes, order, options):
    """The part of a source's block that the result reads, and the keywords of its call; ``axes``: an AxisBlock each."""
    index = [slice(None)] * source.ndim
    for axis, block in zip(order[2:], axes, strict=True):
        index[axis] = slice(block.begin, block.end)
    padding = tuple((block.pad_begin, block.pad_end) for block in axes)
    return source[tuple(index)], options._replace(padding=padding)


def data_block(source, w, axes, name, options, order, channels, whole):
    """A block of `conv` or `conv_backward_data`, from a block of the source with its halo.

    ``order``: the arrays' axes in the order batch, channels, spatial axes. ``channels``: of the result. ``whole``: the
    whole problem, if the block shall have the bits of one call; None if any call has them.
    """
    shape = list(source.shape)
    for axis, size in zip(order[1:], (channels, *(block.size for block in axes)), strict=True):
        shape[axis] = size
    if 0 in shape:
        return zeros(tuple(shape), source)
    source, options = _read(source, axes, order, options)
    asked = () if name == "conv" else (tuple(shape),)
    with _shared_threads():
        if whole is None:
            return getattr(api, name)(source, w, *asked, **options._asdict())
        function = getattr(functions, name.upper())
        geometry = checked(NUMPY, function, source, w, asked, options)
        return run_part(function, geometry, whole, source, w)


def filter_block(x, dy, axes, options, order, w_shape):
    """The gradient of the filter from a block of x with its halo and a block of dy, in the type of the sums."""
    wide = lookup(x.dtype).compute
    if x.dtype.itemsize < np.dtype(wide).itemsize:
        x, dy = x.astype(wide), dy.astype(wide)
    if 0 in dy.shape:
        return zeros(w_shape, x)
    x, options = _read(x, axes, order, options)
    with _shared_threads():
        return api.conv_backward_filter(x, dy, w_shape, **options._asdict())
