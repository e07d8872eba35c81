"""Data that is hard on sums, like benchdnn's filling modes: for each mode, values of two operands."""

import numpy as np

#: Exponents of each type: of its least number, one that leaves room for products and sums, and half the range of a
#: product's exponents that is still far from both ends.
LEAST = {"float16": -24, "bfloat16": -133, "float32": -149, "float64": -1074}
LARGE = {"float16": 3, "bfloat16": 100, "float32": 100, "float64": 900}
HALF_RANGE = {"float16": 4, "bfloat16": 28, "float32": 28, "float64": 220}


def _normal(random, shape, dtype):
    return random.standard_normal(shape)


def _subnormal(random, shape, dtype):
    """Small multiples of the least number."""
    return np.ldexp(random.integers(-9, 10, shape).astype(np.float64), LEAST[dtype])


def _large(random, shape, dtype):
    return np.ldexp(random.standard_normal(shape), LARGE[dtype])


def _huge_range(random, shape, dtype):
    """Values of all magnitudes, with equal probability."""
    half = HALF_RANGE[dtype]
    return np.ldexp(random.choice([-1.0, 1.0], shape), random.integers(-half, half, shape))


def _one_hot(random, shape, dtype):
    """Values with one that is greater than the others by as much as the type allows, up to 1e9."""
    values = random.standard_normal(shape)
    values.reshape(-1)[random.integers(values.size)] = 1e9 if dtype != "float16" else 500
    return values


def _equal(random, shape, dtype):
    return np.full(shape, 1 / 3)


def _alternating(random, shape, dtype):
    """Values with other signs than their neighbours along all axes."""
    signs = (-1.0) ** np.indices(shape).sum(0)
    return signs * (1 + random.random(shape) / 8)


def _cancelling(random, shape, dtype):
    """Values that nearly cancel: neighbouring channels are nearly each other's negatives."""
    values = random.standard_normal(shape)
    odd = values[:, 1::2]
    odd[...] = -values[:, : 2 * odd.shape[1] : 2] * (1 + odd / 1000)
    return values


def _channels_equal(random, shape, dtype):
    """Values that are equal in all channels, so that their products with ``_cancelling`` cancel."""
    return np.broadcast_to(random.standard_normal((shape[0], 1, *shape[2:])), shape)


MODES = {
    "cancellation": (_cancelling, _channels_equal),
    "subnormal_first": (_subnormal, _large),
    "subnormal_second": (_large, _subnormal),
    "subnormal_and_normal": (_subnormal, _normal),
    "huge_range": (_huge_range, _huge_range),
    "huge_range_first": (_huge_range, _normal),
    "one_hot_first": (_one_hot, _normal),
    "one_hot_second": (_normal, _one_hot),
    "all_equal": (_equal, _equal),
    "alternating_signs": (_alternating, _alternating),
}


def filled(mode, shapes, dtype, kind):
    """Two operands of these shapes. ``dtype`` is the type's name, ``kind`` the type itself."""
    random = np.random.default_rng(len(mode))
    with np.errstate(over="ignore", under="ignore"):
        return [fill(random, shape, dtype).astype(kind) for fill, shape in zip(MODES[mode], shapes, strict=True)]
