"""What the two algorithms' work costs, by the width of vectors: tables fitted from measurements, for ``tilings.py``.

``python -m bench.fit_algorithm`` measures and fits anew.
"""

from typing import NamedTuple

from ...problem import DGRAD, FPROP, WGRAD

#: Of a box: a register tile has six rows, and the filter is read for each box. A part of the fit: ``few_tiles``.
FEW_TILES = 12
#: Products of a problem whose data stay in the caches. The costs were fitted to larger ones, most of whose transforms
#: wait for memory.
SMALL_PRODUCTS = 700_000_000


class Costs(NamedTuple):
    """
    Attributes
    ----------
    each : dict
        Seconds for 10**9 of what is done, on one thread, by its name.
    large_tiles : dict
        Transforms of many points cost more than their number tells: the time with so many points on the three axes,
        in ascending order, is multiplied by this.
    few_tiles : float
        fprop and dgrad of boxes with fewer than FEW_TILES tiles take so many times as long.
    least_gain : float
        So much the table has to promise before another algorithm than the direct one is taken.
    least_gain_of_small : float
        The same, of problems with fewer than SMALL_PRODUCTS. On Zen 4 these gain 1.1 to 1.4 times what the table says.
    least_gain_of_pairs : float
        As ``least_gain``, of bfloat16 where the direct algorithm multiplies pairs of it.
    least_gain_of_little : dict
        As ``least_gain``, by operation, where few products are saved: transforms then take more of the gain.
    """

    each: dict
    large_tiles: dict
    few_tiles: float
    least_gain: float
    least_gain_of_small: float
    least_gain_of_pairs: float
    least_gain_of_little: dict


#: Fitted on Zen 3; "filter", "kept filter" and "gathered" were then set by hand, within what the fits of several
#: machines gave, so that layers near the border go the faster way. So were the gains of both tables: with them, no
#: layer of the suites was slower by 3 % than by the direct algorithm, but for a few in one of the two layouts.
NARROW = Costs(
    each={
        "direct product": 0.2982,  # steps of depth of a tile, in cycles
        "direct wgrad product": 0.2949,
        "direct filter": 0.3551,  # elements of the filter
        "product": 0.2613,  # as of the direct algorithm
        "value": 0.2129,  # transformed values of the source
        "filter": 0.185,  # of the filter, by the tasks; taken from memory where they are kept
        "kept filter": 0.32,
        "scattered filter": 0.1263,
        "gathered": 0.5,  # elements of x and y whose neighbours walks skip: reordered where they are adjacent
        "load": 0.0546,  # that a chunk of channels is added to
        "sum": 0.1645,  # that are transformed back
        "wgrad product": 0.2193,
        "wgrad value": 0.2082,  # of both operands
        "wgrad load": 0.1018,
        "wgrad sum": 0.041,
        "wgrad slice": 0.0,  # elements of the filters of several slices, which pass through memory
    },
    large_tiles={(1, 7, 7): 1.09},
    few_tiles=1.0,
    least_gain=1.25,
    least_gain_of_small=1.1,
    least_gain_of_pairs=1.25,
    least_gain_of_little={FPROP: 1.4, DGRAD: 1.4, WGRAD: 1.6},
)
#: Fitted on Zen 5 with vectors of 64 bytes; those of wgrad again since tiles that are kept count once. The gain of
#: dgrad was set by hand, for ResNet-50's 3x3 at stride 2, since filters of phases that are kept count as such; so was
#: "scattered filter", since their chunks are larger: with 512 channels that layer takes 1.12 by tiles. On Zen 4 these
#: costs hold for 16-bit types as they are; with the gain of pairs set there, no layer of eight suites took over 1.04.
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
    """Whether a problem's data stay in the caches, and gain from that: large tiles of three axes and groups do not."""
    return problem.groups == 1 == problem.kernel[0] and problem.multiplications < SMALL_PRODUCTS


def costs_of(tile):
    """The table for a machine's vectors."""
    return WIDE if tile.vector_bytes >= 64 else NARROW
