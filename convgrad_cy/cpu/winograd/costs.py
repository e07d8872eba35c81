"""Costs of the direct algorithm and of Winograd's algorithm, for ``tilings.py``. Each vector width has a table.

The tables were fitted from measurements. ``python -m bench.fit_algorithm`` measures and fits again.
"""

from typing import NamedTuple

from ...problem import DGRAD, FPROP, WGRAD

#: Boxes with fewer tiles are slower, by ``few_tiles``: a register tile has six rows, and each box reads the filter.
FEW_TILES = 12
#: Problems with fewer products keep their data in the caches. The costs were fitted to larger problems, in which most
#: transforms wait for memory.
SMALL_PRODUCTS = 700_000_000


class Costs(NamedTuple):
    """
    Attributes
    ----------
    each : dict
        Seconds of one thread for 10**9 units of each kind of work, by its name.
    large_tiles : dict
        Factor on the time of tilings, by the points on the three axes in ascending order. The time of transforms grows
        faster than the number of points.
    few_tiles : float
        Factor on the time of fprop and dgrad if boxes have fewer than FEW_TILES tiles.
    least_gain : float
        Minimum predicted speedup over the direct algorithm for which Winograd's algorithm is taken.
    least_gain_of_small : float
        ``least_gain`` for problems with fewer than SMALL_PRODUCTS. On Zen 4, their measured speedup is 1.1 to 1.4
        times the predicted one.
    least_gain_of_pairs : float
        ``least_gain`` for bfloat16 if the direct algorithm multiplies pairs of bfloat16.
    least_gain_of_little : dict
        ``least_gain`` by operation if few products are saved: transforms then cost a larger part of the gain.
    """

    each: dict
    large_tiles: dict
    few_tiles: float
    least_gain: float
    least_gain_of_small: float
    least_gain_of_pairs: float
    least_gain_of_little: dict


#: Costs for vectors of less than 64 bytes, fitted on Zen 3. "filter", "kept filter" and "gathered" were then set by
#: hand, within the range of the fits of several machines, so that layers near the border take the faster algorithm.
#: The gains of both tables were also set by hand. With them, no layer of the suites was more than 3 % slower than with
#: the direct algorithm, except a few layers in one of the two layouts.
NARROW = Costs(
    each={
        "direct product": 0.2982,  # cycles of the register tile
        "direct wgrad product": 0.2949,
        "direct filter": 0.3551,  # elements of the filter
        "product": 0.2613,  # cycles of the register tile
        "value": 0.2129,  # transformed values of the source
        "filter": 0.185,  # transformed values of the filter, which each task transforms itself
        "kept filter": 0.32,  # these, if they are kept for all tasks: they pass through memory
        "scattered filter": 0.1263,  # as "filter", with taps that are not adjacent
        "gathered": 0.5,  # elements of x and y that are reordered because walks skip neighbours
        "load": 0.0546,  # sums to which a chunk of channels is added
        "sum": 0.1645,  # sums that are transformed back
        "wgrad product": 0.2193,
        "wgrad value": 0.2082,  # transformed values of both operands
        "wgrad load": 0.1018,
        "wgrad sum": 0.041,
        "wgrad slice": 0.0,  # sums of several slices, which pass through memory
    },
    large_tiles={(1, 7, 7): 1.09},
    few_tiles=1.0,
    least_gain=1.25,
    least_gain_of_small=1.1,
    least_gain_of_pairs=1.25,
    least_gain_of_little={FPROP: 1.4, DGRAD: 1.4, WGRAD: 1.6},
)
#: Costs for vectors of 64 bytes, fitted on Zen 5. The gain of dgrad and "scattered filter" were set by hand, for
#: ResNet-50's 3x3 layers of stride 2. With them, the layer of 512 channels takes 1.12 times the time of the direct
#: algorithm. The costs also hold for 16-bit types on Zen 4. ``least_gain_of_pairs`` was set there: no layer of eight
#: suites took more than 1.04 times the time of the direct algorithm.
WIDE = Costs(
    each={
        "direct product": 0.2903,
        "direct wgrad product": 0.3045,
        "direct filter": 0.11,
        "product": 0.2922,
        "value": 0.133,
        "filter": 0.0823,
        "kept filter": 0.2146,
        "scattered filter": 0.095,
        "gathered": 0.26,
        "load": 0.0917,
        "sum": 0.0844,
        "wgrad product": 0.3023,
        "wgrad value": 0.1429,
        "wgrad load": 0.0082,
        "wgrad sum": 0.1271,
        "wgrad slice": 0.0352,
    },
    large_tiles={(1, 7, 7): 1.04},
    few_tiles=1.3,
    least_gain=1.15,
    least_gain_of_small=0.9,
    least_gain_of_pairs=1.08,
    least_gain_of_little={FPROP: 1.15, DGRAD: 1.14, WGRAD: 1.15},
)


def is_small(problem):
    """Whether a problem gains because its data stay in the caches. Problems with groups or a 3-D kernel do not."""
    return problem.groups == 1 == problem.kernel[0] and problem.multiplications < SMALL_PRODUCTS


def costs_of(tile):
    """The costs for a machine's vectors."""
    return WIDE if tile.vector_bytes >= 64 else NARROW
