"""One call for each loop that the kernels run with a team of threads, large enough for one."""

import numpy as np

import convgrad_cy as cg


def _reals(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


_X, _W, _Y = _reals(2, 32, 26, 26), _reals(32, 32, 3, 3), _reals(2, 32, 24, 24)
_LANES, _LANES_W, _LANES_Y = _reals(4, 64, 26, 26), _reals(64, 1, 3, 3), _reals(4, 64, 24, 24)
_PATCHES, _PATCHES_W = _reals(4, 512, 8, 8), _reals(512, 3, 8, 8)

#: The kernel, with "lanes" if vectors run along the groups -> the call.
CALLS = {
    "correlate": lambda: cg.conv(_X, _W, algorithm="direct"),
    "wgrad": lambda: cg.conv_backward_filter(_X, _Y, _W.shape, algorithm="direct"),
    "correlate lanes": lambda: cg.conv(_LANES, _LANES_W, groups=64),
    "wgrad lanes": lambda: cg.conv_backward_filter(_LANES, _LANES_Y, _LANES_W.shape, groups=64),
    "winograd_correlate": lambda: cg.conv(_X, _W, algorithm="winograd"),
    "winograd_wgrad": lambda: cg.conv_backward_filter(_X, _Y, _W.shape, algorithm="winograd"),
    "rearrange": lambda: cg.conv_backward_data(_PATCHES, _PATCHES_W, (4, 3, 64, 64), stride=8),
}


def results(threads):
    """The bytes of all results, computed with ``threads`` threads."""
    with cg.num_threads(threads):
        return {name: call().tobytes() for name, call in CALLS.items()}
