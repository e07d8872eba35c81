"""Walks cut so that padding is not multiplied: they have the terms of the definition, no other, each once."""

from collections import Counter
from itertools import chain, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operations import DTYPES, OPERATIONS, assert_exact, integer_tensors
from problems import parse

import convgrad_cy
from convgrad_cy import calls
from convgrad_cy.cpu import direct
from convgrad_cy.cpu.direct import padding
from convgrad_cy.cpu.direct.padding import without_padding
from convgrad_cy.cpu.machine.tuning import WIDE
from convgrad_cy.cpu.plan.steps import PACKS, Blocks
from convgrad_cy.problem import ConvProblem, conv_size

#: Layers with at least a quarter of their products in padding.
LAYERS = [
    parse('mb2ic64ih16oc64kh3dh7ph8n"2d_far_taps"'),
    parse('mb8g2ic128ih20iw24oc128kh3kw5dh8dw4ph9pw8n"2d_far_taps_of_groups"'),
    parse('mb8ic64iw40oc70kw3dw15pw16n"1d_far_taps"'),
    parse('mb9ic64ih23oc64kh2sh2dh14ph8n"2d_far_taps_with_stride"'),
    parse('mb4ic112ih12iw30oc64kh3dh4ph5dw11kw3pw12n"2d_far_taps_of_several_strips"'),
    parse('mb4ic150ih16oc150kh3dh7ph8n"2d_far_taps_of_unequal_chunks"'),
]

#: A layer whose stride phases of dgrad are all cut.
PHASES = parse('mb2ic40ih16oc40kh3sh2dh8ph10n"2d_far_taps_of_phases"')

#: A layer with so few channels that fprop keeps rows of positions as they are.
FEW_CHANNELS = parse('mb1ic3ih96oc64kh3dh31ph32n"2d_far_taps_of_few_channels"')


def terms(walks):
    """The count of each term (source, filter, target) whose source exists in the walks; whether there are others."""
    found, padded = Counter(), False
    for walk in walks:
        for position in product(*(range(axis.positions) for axis in walk)):
            for tap in product(*(range(axis.taps) for axis in walk)):
                at = list(zip(walk, position, tap, strict=True))
                source = tuple(a.source_begin + p * a.source_step + t * a.source_tap for a, p, t in at)
                if all(0 <= index < a.source_size for index, a in zip(source, walk, strict=True)):
                    filter = tuple(a.filter_begin + t * a.filter_step for a, _, t in at)
                    found[source, filter, tuple(a.target_begin + p * a.target_step for a, p, _ in at)] += 1
                else:
                    padded = True
    return found, padded


@given(
    extents=st.tuples(st.integers(1, 2), st.integers(1, 14), st.integers(1, 14)),
    kernel=st.tuples(st.just(1), st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.just(1), st.integers(1, 3), st.integers(1, 3)),
    dilation=st.tuples(st.just(1), st.integers(1, 9), st.integers(1, 9)),
    pad=st.tuples(st.just(0), st.integers(0, 12), st.integers(0, 12)),
)
def test_terms(extents, kernel, stride, dilation, pad):
    y = tuple(map(conv_size, extents, kernel, stride, dilation, ((p, p) for p in pad)))
    if min(y) <= 0:
        return
    problem = ConvProblem(8, 1, 1, 1, extents, y, kernel, stride, dilation, pad)
    for walks, by_taps in (
        ([problem.forward_walk()], False),
        (problem.backward_walks(), False),
        ([problem.forward_walk()], True),
    ):
        parts = without_padding(walks, [1] * len(walks), problem.batch, by_taps, WIDE)
        cut = [*chain(*parts)]
        if len(cut) == len(walks):
            continue
        (before, _), (after, padded) = terms(walks), terms(cut)
        assert after == before and not padded
        assert all(terms([walk])[0] == terms(its_parts)[0] for walk, its_parts in zip(walks, parts, strict=True))
        assert len(cut) <= WIDE.most_parts and all(
            8 * prod(axis.positions for axis in walk) >= WIDE.least_positions for walk in cut
        )
        of_all = sum(prod(axis.positions * axis.taps for axis in walk) for walk in walks)
        assert sum(after.values()) <= WIDE.left_products * of_all


@pytest.mark.parametrize("problem", LAYERS, ids=str)
@pytest.mark.parametrize("kernel", ("conv", "conv_backward_data", "conv_backward_filter"))
def test_layers_are_cut(monkeypatch, problem, kernel):
    cut = []
    monkeypatch.setattr(direct, "make_plan", lambda *a, make=direct.make_plan: cut.append(make(*a)) or cut[-1])
    calls.forget()
    tensors, _ = integer_tensors(problem, "float32")
    OPERATIONS[kernel].call(problem, tensors, algorithm="direct")
    # In the strided layer, dgrad's phases have positions without any tap, and are left whole.
    phases = 4 if problem.stride[0] == 2 and kernel == "conv_backward_data" else 1
    assert (len(cut[-1].steps) > phases) == (phases == 1)
    packed = cut[-1].steps[:, -1].tolist()
    if kernel == "conv_backward_filter" or phases > 1:
        assert packed == [*range(len(packed))]
    else:  # the filter is packed once, for all parts of the walk
        assert packed == [PACKS] + [0] * (len(packed) - 1)


def test_parts_of_phases_use_their_own_filter(monkeypatch):
    made = []
    monkeypatch.setattr(direct, "make_plan", lambda *a, make=direct.make_plan: made.append(make(*a)) or made[-1])
    calls.forget()
    tensors, _ = integer_tensors(PHASES, "float32")
    OPERATIONS["conv_backward_data"].call(PHASES, tensors, algorithm="direct")
    packed = made[-1].steps[:, -1].tolist()
    packing = [i for i, row in enumerate(packed) if row == PACKS]
    assert len(packing) == 4 and all(packed[i + 1] == i for i in packing)


def test_parts_keep_rows(monkeypatch):
    made = []
    monkeypatch.setattr(direct, "make_plan", lambda *a, make=direct.make_plan: made.append(make(*a)) or made[-1])
    calls.forget()
    tensors, _ = integer_tensors(FEW_CHANNELS, "float32")
    OPERATIONS["conv"].call(FEW_CHANNELS, tensors, algorithm="direct")
    assert Blocks(*made[-1].blocks.tolist()).positions_across and made[-1].steps[0, -1] == PACKS


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("data_format, filter_format", (("NCX", "OIX"), ("NXC", "XIO")))
@pytest.mark.parametrize("problem", [*LAYERS, PHASES, FEW_CHANNELS], ids=str)
def test_exact(operation, dtype, data_format, filter_format, problem):
    tensors, _ = integer_tensors(problem, dtype)
    expected = operation.expected(problem, tensors, data_format, filter_format)
    assert_exact(operation.call(problem, tensors, data_format, filter_format), expected, dtype)


def test_infinity_meets_no_padding():
    x, w = np.ones((2, 4, 16, 16), np.float32), np.ones((4, 4, 3, 3), np.float32)
    w[1, 2, 0, 0] = np.inf
    y = convgrad_cy.conv(x, w, dilation=7, padding=8, algorithm="direct")
    assert np.isinf(y[:, 1, 8:, 8:]).any() and not np.isnan(y).any()
    assert np.isfinite(np.delete(y, 1, axis=1)).all()


def test_short_reach_is_left_alone(monkeypatch):
    monkeypatch.setattr(padding, "_by_positions", None)
    problem = ConvProblem(8, 1, 1, 1, (1, 56, 56), (1, 56, 56), (1, 3, 3), pad_begin=(0, 1, 1))
    walks = [problem.forward_walk()]
    assert without_padding(walks, [1], 8, False, WIDE) == [walks]
