"""The order of sums is decided without the layout, the threads and the caches: a matter of signatures."""

from dataclasses import replace
from inspect import signature
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from operations import DTYPES, OPERATIONS, bits, real_tensors
from plans import plan_of
from problems import parse
from test_plan import TILES, depthwise, problems, unpacked

from convgrad_cy import dtypes
from convgrad_cy.cpu.direct.long_filters import split_taps
from convgrad_cy.cpu.direct.order import BoxOrder, Order, box_order_of, order_of
from convgrad_cy.cpu.machine import Machine, RegisterTile
from convgrad_cy.cpu.plan.sum_problem import SumProblem, sum_problem_of
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd import tilings
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

#: The functions that decide it. Each takes a ``SumProblem``, or a problem with the ``RegisterTile``.
FIRST_STAGE = {
    order_of: ["sums"],
    box_order_of: ["sums", "pieces"],
    split_taps: ["sums", "parts"],
    sum_problem_of: ["operation", "problem", "dtype", "tile", "backward"],
    tilings.decide.__wrapped__: ["operation", "problem", "dtype", "forced", "tile"],
    winograd.choose.__wrapped__: ["operation", "problem", "tiling", "tile"],
}
#: Names that no such type has.
UNSEEN = ("positions_adjacent", "strides", "tensors", "source_bytes", "threads", "machine", "placement")
UNSEEN += ("cache_bytes", "l1_bytes", "l2_bytes")


class Blind:
    """A tile whose own fields alone can be read."""

    def __init__(self, tile):
        self.__dict__.update(tile._asdict(), halves=tile.halves)
        self.unsplit, self.pairs = lambda: Blind(tile.unsplit()), tile.pairs

    def __getattr__(self, name):
        raise AssertionError(f"the first stage asked for {name}")


@pytest.mark.parametrize(("stage", "names"), FIRST_STAGE.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_signatures(stage, names):
    assert list(signature(stage).parameters) == names
    seen = {
        *ConvProblem.__dataclass_fields__,
        *SumProblem._fields,
        *RegisterTile._fields,
        *dir(SumProblem),
        *dir(RegisterTile),
    }
    assert not seen & set(UNSEEN)
    assert set(UNSEEN) & set(Machine._fields)  # so these are names of hidden fields


@given(problem=problems | depthwise, tile=st.sampled_from(TILES), dtype=st.sampled_from(dtypes.TABLE))
def test_the_first_stage_asks_for_nothing_else(problem, tile, dtype):
    """The first stage must not find other data elsewhere: only the own fields of its tile can be read."""
    tile = Machine(*tile, threads=2).tile
    for operation in (FPROP, DGRAD, WGRAD):
        tiles = tile, Blind(tile)
        seen, blind = (sum_problem_of(operation, problem, dtype, one, operation == DGRAD) for one in tiles)
        decide = box_order_of if operation == WGRAD else order_of
        assert decide(blind) == decide(seen)
        assert type(decide(seen)) is (BoxOrder if operation == WGRAD else Order)


#: Small groups would take the data gradient in bfloat16 only with adjacent positions.
LAYOUTS_DIFFER = ConvProblem(
    batch=2, groups=32, x_channels=7, y_channels=5, x=(1, 1, 76), y=(1, 1, 7), kernel=(1, 1, 64), stride=(1, 2, 2),
    dilation=(1, 1, 1), pad_begin=(0, 0, 0),
)  # fmt: skip


def machines(tile, *threads):
    """Machines with the same processor, other numbers of threads, and other caches."""
    return [
        Machine(*tile, 2)._replace(threads=n, l1_bytes=size >> 4, l2_bytes=size >> 2, cache_bytes=size)
        for n, size in zip(threads, (1 << 16, 1 << 30, 1 << 20), strict=False)
    ]


#: Channels last, wgrad of small groups cuts a box into several of fewer rows for 1 and 7 threads, but not for 64.
BANDS_DIFFER = ConvProblem(
    batch=8, groups=192, x_channels=1, y_channels=1, x=(1, 5, 57), y=(1, 5, 57), kernel=(1, 3, 3), stride=(1, 1, 1),
    dilation=(1, 1, 1), pad_begin=(0, 1, 1),
)  # fmt: skip


def starts(size, step):
    return range(0, size, step)


def rows_of_slices(batch, walk, window, blocks):
    """The rows that wgrad of small groups sums together, in the order in which each slice adds them.

    Rows are (image, depth, first height, end, first column, end). A slice ends between groups of ``bands`` boxes. In a
    box, rows are summed together up to a multiple of ``heights`` (``rows_alike`` of pyx/small_groups/rows.pxd).
    """
    depth, height, width = (axis.positions for axis in walk)
    of_depth, of_height, of_width = (axis.positions for axis in window)
    banded = []
    for n, d, h in product(range(batch), starts(depth, of_depth), starts(height, of_height * blocks.bands)):
        heights = range(h, min(h + of_height * blocks.bands, height), of_height)
        boxes = list(product(heights, starts(width, of_width)))
        # Without bands, each box counts by itself.
        banded += [[(n, d, *box) for box in boxes]] if blocks.bands > 1 else [[(n, d, *box)] for box in boxes]
    slices = []
    for i in range(blocks.slices):
        first, end = (len(banded) * each // blocks.slices for each in (i, i + 1))
        slices.append([])
        for n, d0, h0, w0 in [box for band in banded[first:end] for box in band]:
            last = min(h0 + of_height, height)
            for d in range(d0, min(d0 + of_depth, depth)):
                cuts = [h0, *range(h0 - h0 % blocks.heights + blocks.heights, last, blocks.heights), last]
                rows = pairwise(cuts)
                slices[-1] += [(n, d, *each, w0, min(w0 + of_width, width)) for each in rows]
    return slices


@given(
    problem=problems | depthwise,
    tile=st.sampled_from(TILES),
    channels=st.integers(1, 600),
    dtype=st.sampled_from(dtypes.TABLE),
)
@example(
    problem=LAYOUTS_DIFFER,
    tile=(6, 256, 64, True, 32 << 20),
    channels=1,
    dtype=next(t for t in dtypes.TABLE if t.name == "bfloat16"),
)
@example(problem=BANDS_DIFFER, tile=(6, 256, 64, True, 32 << 20), channels=1, dtype=dtypes.TABLE[0])
def test_plans_keep_the_order(problem, tile, channels, dtype):
    """The terms of a sum must be added in one order, for any layout, threads and caches.

    The bits of fprop and dgrad depend on the chunks of channels and on pairs; small groups add one term at a time.
    The bits of wgrad depend on pairs, on slices, and on the boxes of a slice. Small groups may cut a box into bands of
    fewer rows, and no slice ends between them: the bits depend on the rows that are summed together, and on their
    order. The lanes of a task, its groups, its threads and its stores change no bit.
    """
    for operation in (FPROP, DGRAD):
        if problem.groups == 1:
            problem = replace(problem, **{"x_channels" if operation == FPROP else "y_channels": channels})
        sums = sum_problem_of(operation, problem, dtype, Machine(*tile, 2).tile, operation == DGRAD)
        order = order_of(sums)
        every = [
            unpacked(plan_of(operation, problem, dtype, adjacent, machine))[2]
            for adjacent in (False, True)
            for machine in machines(tile, 1, 7, 64)
        ]
        # Lanes add all terms one by one.
        assert order.is_plain(sums) or len({blocks.lanewise for blocks in every}) == 1
        one_tap = sums.taps <= 1 and not order.pairs  # channels follow each other, however they are cut
        for blocks in every:
            assert blocks.lanewise or (blocks.pairs == order.pairs and (blocks.chunk == order.chunk or one_tap))
    orders = []
    for adjacent, machine in product((False, True), machines(tile, 1, 7, 64)):
        (walk, *_), (window, *others), made = unpacked(plan_of(WGRAD, problem, dtype, adjacent, machine))
        boxes = rows_of_slices(problem.batch, walk, window, made) if made.lanewise else [window, *others]
        orders.append((boxes, made.lanewise, made.images, made.slices, made.pairs))
    assert all(order == orders[0] for order in orders)


def test_a_changed_cut_is_seen():
    """Bands with a slice's end between them, or rows that are not summed together, must be seen as another order."""
    (walk,), (window,), made = unpacked(plan_of(WGRAD, BANDS_DIFFER, dtypes.TABLE[0], False, machines(TILES[0], 1)[0]))
    assert made.bands > 1 and made.slices > 1
    order = rows_of_slices(BANDS_DIFFER.batch, walk, window, made)
    whole = [window[0], window[1]._replace(positions=walk[1].positions), window[2]]
    assert order == rows_of_slices(BANDS_DIFFER.batch, walk, whole, made._replace(bands=1))
    single, fewer = made._replace(heights=1), made._replace(slices=5)
    assert rows_of_slices(BANDS_DIFFER.batch, walk, window, single) != order
    cut = [rows_of_slices(BANDS_DIFFER.batch, walk, window, one) for one in (fewer, fewer._replace(bands=1))]
    assert cut[0] != order and cut[0] != cut[1]


@given(problem=problems | depthwise, tile=st.sampled_from(TILES), adjacent=st.booleans())
def test_threads_and_caches_change_little(problem, tile, adjacent):
    """Two threads must change only stores, prefetches and, channels last, the number of groups of a task.

    The L1 cache must change only the size of boxes across positions, whose sums end with each box.
    """
    few, more = machines(tile, 1, 2)
    for operation in (FPROP, DGRAD, WGRAD):
        one, other, many = (
            unpacked(plan_of(operation, problem, dtypes.TABLE[2], adjacent, machine))
            for machine in (few, few._replace(l1_bytes=more.l1_bytes), more)
        )
        sums = sum_problem_of(operation, problem, dtypes.TABLE[2], Machine(*tile, 2).tile, operation == DGRAD)
        halves = not adjacent and 2 * sums.outputs == sums.lanes  # the cache decides about the form
        free = {"threads": 1, "nontemporal": False, "prefetch": 0, "target_in_memory": False}
        if not adjacent:
            free["groups"] = 1
        if not halves:
            assert other[:2] == many[:2]
            assert other[2]._replace(**free) == many[2]._replace(**free)
        if operation == WGRAD or not other[2].positions_across:
            assert one == other
        free |= {"images": 1, "groups": 1}
        assert one[0] == other[0] and one[2]._replace(**free) == other[2]._replace(**free)
        worth = problem.multiplications * (8 if many[2].lanewise else 1) >= sums.tuning.serial_products
        taps = problem.x_channels * problem.y_channels * prod(problem.kernel)
        images = problem.x_channels * prod(problem.x) + problem.y_channels * prod(problem.y)
        elements = problem.groups * (taps + problem.batch * images)
        assert many[2].threads == (2 if worth or 4 * elements >= sums.tuning.serial_bytes else 1)


#: Problems that layouts have treated differently. Small groups side by side channels last add all terms one by one;
#: another family took them channels first. bfloat16 was computed in pairs and one by one.
LAYOUTS_DIFFERED = (
    ("conv_backward_data", "float32", "g2mb2ic10ih69oc12kh31sh2"),
    ("conv_backward_data", "float32", "g2mb2ic10ih66oc16kh28sh2"),
    ("conv_backward_data", "bfloat16", "mb2ic2ih114iw112oc512kh5sh5"),
    ("conv_backward_data", "bfloat16", "mb16g3ic15id11ih16iw14oc18kd1kh3kw7sd2sh2sw2ph1pw3"),
    ("conv", "bfloat16", "mb16ic377ih114iw111oc2kh1sh2"),
)


@pytest.mark.parametrize(("name", "dtype", "text"), LAYOUTS_DIFFERED)
def test_layouts_have_the_same_bits(name, dtype, text):
    if dtype not in DTYPES:
        pytest.skip("ml_dtypes is not installed")
    problem, operation = parse(f'{text}n"differed"'), OPERATIONS[name]
    tensors, algorithm = real_tensors(problem, dtype), "auto" if dtype == "bfloat16" else "direct"
    first, last = (
        operation.call(problem, tensors, data_format, "OIX", algorithm=algorithm, layout=np.ascontiguousarray)
        for data_format in ("NCX", "NXC")
    )
    assert bits(np.ascontiguousarray(np.moveaxis(last, -1, 1))) == bits(first)
