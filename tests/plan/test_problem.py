"""The geometry of problem.py against brute force, and the parser of problems.txt against benchdnn's rules."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import PROBLEMS, parse

from convgrad_cy import problem as geometry

#: Sizes of one axis: x, kernel, stride, dilation, (begin, end), with at least one output.
AXES = st.tuples(
    st.integers(1, 14),
    st.integers(1, 6),
    st.integers(1, 7),
    st.integers(1, 7),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
).filter(lambda axis: axis[0] + sum(axis[4]) >= (axis[1] - 1) * axis[3] + 1)
exhaustive = settings(max_examples=400, derandomize=True)


def windows(x, kernel, stride, dilation, padding):
    """The start of every window, relative to x, that lies within the padded x."""
    begin, end = padding
    return [s for s in range(-begin, x + end, stride) if s + (kernel - 1) * dilation <= x + end - 1]


def met(walk):
    """(position, tap) -> places of source, filter and target."""
    return {
        (p, t): (
            p * walk.source_step + t * walk.source_tap + walk.source_begin,
            t * walk.filter_step + walk.filter_begin,
            p * walk.target_step + walk.target_begin,
        )
        for p, t in product(range(walk.positions), range(walk.taps))
    }


def extremes_of(places):
    return min(place for place, _, _ in places.values()), max(place for place, _, _ in places.values())


def pairs(walks):
    """(target, tap, source) of every term that walks along one axis visit."""
    return sorted(
        (target, tap, source)
        for walk in walks
        for source, tap, target in met(walk).values()
        if 0 <= source < walk.source_size
    )


def definition(x, y, kernel, stride, dilation, begin):
    """(p, t, q) of every term, from the forward index map."""
    terms = ((p, t, p * stride + t * dilation - begin) for p in range(y) for t in range(kernel))
    return sorted(term for term in terms if 0 <= term[2] < x)


@given(AXES)
@exhaustive
def test_conv_size(axis):
    assert geometry.conv_size(*axis) == len(windows(*axis))


@given(AXES, st.integers(0, 6))
@exhaustive
def test_conv_transpose_size(axis, output_padding):
    """The size must be the smallest with the given number of windows; output_padding must add to it."""
    x, kernel, stride, dilation, padding = axis
    y = geometry.conv_size(*axis)
    smallest = geometry.conv_transpose_size(y, kernel, stride, dilation, padding)
    assert (
        geometry.conv_transpose_size(y, kernel, stride, dilation, padding, output_padding) == smallest + output_padding
    )
    # x may exceed it by the rest of a stride, and no smaller size has as many windows.
    assert smallest <= x < smallest + stride
    assert smallest < 1 or len(windows(smallest, kernel, stride, dilation, padding)) == y
    assert smallest < 2 or len(windows(smallest - 1, kernel, stride, dilation, padding)) < y


@given(st.integers(1, 20), st.integers(1, 6), st.integers(1, 7), st.integers(1, 5), st.booleans())
@exhaustive
def test_same_padding(x, kernel, stride, dilation, lower):
    begin, end = geometry.same_padding(x, kernel, stride, dilation, lower)
    wanted = (x + stride - 1) // stride
    assert len(windows(x, kernel, stride, dilation, (begin, end))) == wanted
    total = begin + end
    assert total == 0 or len(windows(x, kernel, stride, dilation, (0, total - 1))) < wanted, "more than is needed"
    assert (begin - end if lower else end - begin) == total % 2, "the odd one is at the wrong side"


@given(AXES)
@exhaustive
def test_forward_walk(axis):
    x, kernel, stride, dilation, (begin, _) = axis
    y = geometry.conv_size(*axis)
    walk = geometry.forward_axis(x, y, kernel, stride, dilation, begin)
    assert pairs([walk]) == definition(x, y, kernel, stride, dilation, begin)


@given(AXES)
@exhaustive
def test_backward_phases(axis):
    """The phases of dgrad must visit every term of the convolution once. Each x must belong to one phase at most."""
    x, kernel, stride, dilation, (begin, _) = axis
    y = geometry.conv_size(*axis)
    phases = geometry.backward_axis_phases(x, y, kernel, stride, dilation, begin)
    found = sorted((p, t, q) for q, t, p in pairs(phases))
    assert found == definition(x, y, kernel, stride, dilation, begin)
    targets = [p * walk.target_step + walk.target_begin for walk in phases for p in range(walk.positions)]
    assert len(targets) == len(set(targets))
    assert all(0 <= target < x for target in targets)
    for walk in phases:
        assert walk.source_step == 1
        assert walk.positions > 0 and walk.taps > 0
        assert all(0 <= t * walk.filter_step + walk.filter_begin < kernel for t in range(walk.taps))


@given(AXES, st.data())
@settings(deadline=None, derandomize=True)
def test_extremes_and_parts(axis, data):
    """The pairs of places in a walk, and in a part of it, must equal the pairs by the walk's definition."""
    x, kernel, stride, dilation, padding = axis
    sizes = x, geometry.conv_size(*axis), kernel, stride, dilation, padding[0]
    for walk in (geometry.forward_axis(*sizes), *geometry.backward_axis_phases(*sizes)):
        whole = met(walk)
        assert walk.extremes() == extremes_of(whole)
        assert walk.is_padded() == any(not 0 <= place < walk.source_size for place, _, _ in whole.values())
        begin, tap = data.draw(st.integers(0, walk.positions - 1)), data.draw(st.integers(0, walk.taps - 1))
        end, last = data.draw(st.integers(begin + 1, walk.positions)), data.draw(st.integers(tap + 1, walk.taps))
        part = met(walk.part(begin, end, tap, last - tap))
        assert part == {(p, t): whole[begin + p, tap + t] for p in range(end - begin) for t in range(last - tap)}
        assert walk.extremes(end) == extremes_of({(p, t): places for (p, t), places in whole.items() if p < end})


@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 32))
def test_balanced_size(extent, most, multiple):
    """Blocks must be whole multiples, unless the extent is less than one, and no more than needed."""
    size = geometry.balanced_size(extent, most, multiple)
    assert size <= max(most + multiple - 1, multiple) and (size % multiple == 0 or size == extent)
    least = -(-extent // max(most, multiple))
    assert -(-extent // size) <= least
    assert multiple > 1 or size == -(-extent // least)


@given(st.lists(AXES, min_size=3, max_size=3))
@settings(max_examples=60, derandomize=True)
def test_problem(axes):
    """The walks of three axes together must be the product of the walks of each."""
    x, kernel, stride, dilation, padding = zip(*axes, strict=True)
    y = tuple(geometry.conv_size(*axis) for axis in axes)
    begin = tuple(pair[0] for pair in padding)
    problem = geometry.ConvProblem(2, 3, 4, 5, x, y, kernel, stride, dilation, begin)
    columns = list(zip(x, y, kernel, stride, dilation, begin, strict=True))
    assert problem.forward_walk() == tuple(geometry.forward_axis(*column) for column in columns)
    phases = [geometry.backward_axis_phases(*column) for column in columns]
    reached = [
        {p * walk.target_step + walk.target_begin for walk in axis for p in range(walk.positions)} for axis in phases
    ]
    walks = problem.backward_walks()
    if any(len(visited) < size for visited, size in zip(reached, x, strict=True)):
        # Some x belongs to no phase. A walk without taps visits all x first.
        for walk, size in zip(walks.pop(0), x, strict=True):
            assert (walk.taps, walk.positions, walk.target_begin, walk.target_step) == (0, size, 0, 1)
    assert walks == list(product(*phases))
    positions = y[0] * y[1] * y[2]
    assert problem.multiplications == 2 * 3 * 4 * 5 * positions * kernel[0] * kernel[1] * kernel[2]


def test_problem_is_frozen():
    problem = geometry.ConvProblem(1, 1, 1, 1, (1, 1, 1), (1, 1, 1), (1, 1, 1))
    with pytest.raises(AttributeError):
        problem.batch = 2
    assert hash(problem) == hash(geometry.ConvProblem(1, 1, 1, 1, (1, 1, 1), (1, 1, 1), (1, 1, 1)))


def test_lift():
    assert geometry.lift((7,), 1) == (1, 1, 7)
    assert geometry.lift([5, 7], 0) == (0, 5, 7)
    assert geometry.lift((3, 5, 7), 1) == (3, 5, 7)


def test_benchdnn_syntax():
    problem = parse('mb3_g2ic4ih9oc6kh3kw2sh2dh1dw0ph1pw0n"why"')
    assert (problem.name, problem.batch, problem.groups) == ("why", 3, 2)
    assert (problem.x_channels, problem.y_channels) == (4, 6)
    assert (problem.x, problem.kernel, problem.stride, problem.dilation) == ((9, 9), (3, 2), (2, 2), (2, 1))
    assert problem.y == (4, 4)
    # 9 + 1 rows take 3 taps, 2 apart, at 0, 2, 4 (and -1): the last of them needs no padding, and no row is left over.
    assert problem.padding == ((1, 1), (0, 0))
    assert problem.w_shape == (6, 2, 3, 2)


@pytest.mark.parametrize(
    "text",
    ['ic4oc4', 'ic4iw5kw3',
     'ic4oc4iw5kw3"no n"', 'ic4oc4iw5kw9n"too_large"', 'ic4ic5oc4iw5n"twice"', 'g3ic4oc3iw5n"groups"',
     'ic4oc4iw5kh3n"axis"', 'ic4oc4iw5ow9kw3pw0sw2n"fine"x'],
)  # fmt: skip
def test_malformed_problems(text):
    with pytest.raises(ValueError):
        parse(text)


def test_enough_problems():
    """The problems must have all kinds of geometry that the suite covers."""
    problems = PROBLEMS.values()
    axes = [axis for p in problems for axis in zip(p.x, p.y, p.kernel, p.stride, p.dilation, p.padding, strict=True)]
    assert len(problems) >= 60
    assert {len(p.kernel) for p in problems} == {1, 2, 3}
    assert {1, 2, 3, 4, 5} <= {axis[2] for axis in axes}
    assert {1, 2, 3, 4} <= {axis[3] for axis in axes}
    for what, condition in {
        "stride beyond the kernel": lambda x, y, k, s, d, p: s > k,
        "stride and dilation with a common divisor": lambda x, y, k, s, d, p: k > 1 and s % 2 == 0 == d % 2,
        "stride and dilation without one": lambda x, y, k, s, d, p: (s, d) == (2, 3),
        "asymmetric padding": lambda x, y, k, s, d, p: p[0] != p[1],
        "padding beyond the kernel": lambda x, y, k, s, d, p: p[0] > (k - 1) * d + 1,
        "leftovers": lambda x, y, k, s, d, p: (y - 1) * s + (k - 1) * d + 1 < x + sum(p),
    }.items():
        assert any(condition(*axis) for axis in axes), what
    assert any(p.groups == p.x_channels > 1 for p in problems)
    assert any(p.batch == 0 for p in problems)
    assert any(p.y_channels > 128 for p in problems) and any(p.x_channels > 128 for p in problems)
