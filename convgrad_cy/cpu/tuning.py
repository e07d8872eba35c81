"""The numbers that decide what is faster in the plans of direct sums and of small groups: one row for each.

None is a limit of what is legal: such limits stay with the code that they limit. Each row says what the number
balances, and for which suites of ``python -m bench --suite ...`` it decides: these measure it. The values for vectors
of a whole line of the cache (64 bytes) and for narrower ones may differ.
"""

from collections import namedtuple
from typing import NamedTuple


class Number(NamedTuple):
    """One number: its value for vectors of a whole line, for narrower ones, and what it is."""

    name: str
    wide: int
    narrow: int
    unit: str
    balances: str
    suites: str


def _same(name, value, *described):
    return Number(name, value, value, *described)


TABLE = (
    # Direct, fprop and dgrad.
    _same(
        "sums_bytes", 192 << 10, "bytes",
        "sums of a task; larger boxes read the filter less often, but sums should stay in an L2 cache of 512 KiB",
        "resnet50 vgg16",
    ),
    _same(
        "depth_bytes", 4608, "bytes",
        "taps x channels of a chunk: sums are loaded and stored as often as a chunk begins, but a strip of the filter "
        "should stay in the L1 cache",
        "resnet50 vgg16",
    ),
    _same(
        "packed_depth_bytes", 2304, "bytes",
        "the same where a task packs its part of the filter, whose strip then shares the L1 cache with its source",
        "inference dcgan",
    ),
    _same(
        "packed_sums_bytes", 256 << 10, "bytes",
        "sums of a task that packs its part of the filter: its window is copied once for all of its outputs",
        "inference dcgan",
    ),
    _same(
        "most_outputs", 512, "channels",
        "outputs of a block: a window is read again for each block, but the filter of a block for each box",
        "resnet50 vgg16",
    ),
    _same("task_products", 2_000_000, "products", "what a task of few positions is to have, for it to pay", "tiny"),
    _same("least_positions", 32, "positions", "of a box, however many tasks are wanted: its rim counts", "tiny"),
    _same(
        "many_positions", 1024, "positions",
        "of a box where each has few products: the work for each box counts",
        "resnet50 mobilenet",
    ),
    _same(
        "many_bytes", 64 << 10, "bytes",
        "of such a box's window across positions, which is read for few outputs",
        "unet",
    ),
    _same(
        "streamed_terms", 8, "terms",
        "of a sum across channels, below which storing past the cache takes longer than the products",
        "unet",
    ),
    # Direct, wgrad.
    _same(
        "wgrad_depth_bytes", 2304, "bytes",
        "rows of a block of the filter: more of them read the target less often, but their sums leave the cache",
        "resnet50 vgg16",
    ),
    Number(
        "wgrad_pointwise_depth_bytes", 2304, 1536, "bytes",
        "the same of one tap: narrow tiles of channels last read a little of each position",
        "resnet50 mobilenet",
    ),
    Number(
        "wgrad_pointwise_positions", 256, 128, "positions",
        "of a box of one tap, likewise",
        "resnet50 mobilenet",
    ),
    _same("wgrad_outputs", 128, "channels", "outputs of a block of the filter, whose sums are held", "resnet50"),
    _same(
        "larger_positions", 512, "positions",
        "of a box of wgrad where sums are loaded and stored less often for it, and boxes are enough",
        "vgg16 resnet50",
    ),
    _same("larger_sums_bytes", 256 << 10, "bytes", "sums of a task with such boxes", "vgg16 resnet50"),
    _same(
        "gathered_bytes", 1024, "bytes",
        "channels of a chunk and outputs of a block whose window is gathered from more lines than it has: fewer blocks "
        "of outputs gather it",
        "resnet50",
    ),
    # Small groups.
    _same("lane_bytes", 512 << 10, "bytes", "copies of a task, to stay in the L2 cache", "resnext"),
    _same("most_lane_bytes", 4 << 20, "bytes", "copies of a task beyond which direct computes it", "resnext"),
    _same("in_place_bytes", 64 << 10, "bytes", "what a task writes where it copies nothing", "mobilenet resnext"),
    Number(
        "row_bytes", 8 << 10, 48 << 10, "bytes",
        "what the lanes of such a task have of a row of positions: longer pieces of memory, but a row should stay in "
        "the L1 cache for all taps; narrow vectors walk along a line more than once",
        "mobilenet resnext",
    ),
    _same("position_bytes", 1024, "bytes", "what they have of a position in wgrad", "mobilenet resnext"),
    _same(
        "most_summed_channels", 4, "channels",
        "of a group in wgrad: the sums of a group are their square",
        "resnext",
    ),
    _same(
        "most_sharing_channels", 4, "channels",
        "of a group up to which, channels first, the phases of a dgrad pay for their copy",
        "resnext",
    ),
    _same(
        "most_expanded_channels", 4, "channels",
        "of a group for each of which fprop and dgrad of one walk copy a vector",
        "resnext",
    ),
    _same("short_sum", 9, "products", "that take as long as a tile's own work for each sum", "resnext"),
    _same("short_sum_adjacent", 18, "products", "the same where positions are adjacent, and rows copied", "resnext"),
)  # fmt: skip


class Tuning(namedtuple("Tuning", [number.name for number in TABLE])):
    """The values of ``TABLE`` for one width of vectors."""

    __slots__ = ()

    def __hash__(self):
        """A plan's caches ask for it often: one value tells the few tables apart."""
        return hash(self.many_positions)


WIDE, NARROW = (Tuning(*(getattr(number, width) for number in TABLE)) for width in ("wide", "narrow"))


def tuning_of(vector_bytes):
    """The ``Tuning`` of a machine's vectors."""
    return WIDE if vector_bytes >= 64 else NARROW
