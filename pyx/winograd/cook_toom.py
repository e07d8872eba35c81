"""Winograd's minimal filtering by the construction of Cook and Toom: exact matrices for any number of points.

F(m, r) gives m outputs of a filter with r taps from n = m + r - 1 products, where the definition has m * r::

    y[i] = sum over t of d[i + t] * g[t]   =   A^T [(G g) * (B^T d)]

Read backwards, this is the product of two polynomials by their values at n points. Evaluation at the points, V, is a
Vandermonde matrix, and the three matrices are

    A^T = V^T with m columns      G = V with r columns, row i divided by N[i]      B^T = the inverse of V, times N[i]

where N[i] is the product of the differences of point i from the others. B^T depends on the points alone, so one
transform of the source serves F(4, 3), F(3, 4) and F(2, 5). In two dimensions the transforms are applied to each axis.
"""

from fractions import Fraction
from math import prod

#: The point at infinity: a polynomial's value there is its leading coefficient.
INFINITY = None
#: Pairs of opposite sign share half of the arithmetic. Among fractions of small integers, these magnitudes have the
#: smallest error in float32. Reciprocal pairs keep the transformed values similar in size. (For six points, the usual 1
#: and 2 have twice the error.) Seven points are zero and three pairs. With infinity one point would have no opposite,
#: and the error would be 1.5x larger.
POINTS = {
    1: (INFINITY,),
    4: (0, 1, -1, INFINITY),
    5: (0, Fraction(3, 4), Fraction(-3, 4), 2, INFINITY),
    6: (0, Fraction(2, 3), Fraction(-2, 3), Fraction(3, 2), Fraction(-3, 2), INFINITY),
    7: (0, Fraction(1, 2), Fraction(-1, 2), Fraction(5, 4), Fraction(-5, 4), 3, -3),
    8: (0, 1, -1, Fraction(1, 2), Fraction(-1, 2), 2, -2, INFINITY),
}


def times_linear(polynomial, root):
    """The coefficients, lowest first, of the polynomial times (x - root)."""
    shifted = [Fraction(0), *polynomial]
    return [high - root * low for high, low in zip(shifted, [*polynomial, Fraction(0)], strict=True)]


def vanishing_at(points):
    """The monic polynomial that has the points as roots."""
    polynomial = [Fraction(1)]
    for point in points:
        polynomial = times_linear(polynomial, Fraction(point))
    return polynomial


def evaluation(points, length):
    """V: the values of a polynomial with ``length`` coefficients at the points."""
    leading = [Fraction(int(power == length - 1)) for power in range(length)]
    return [leading if point is INFINITY else [Fraction(point) ** power for power in range(length)] for point in points]


def finite_others(points, point):
    """All other points except infinity, where a polynomial cannot be made to vanish by a root."""
    return [other for other in points if other not in (point, INFINITY)]


def source_matrix(points):
    """B^T: row i has the coefficients of the polynomial that vanishes at all points except point i."""
    rows = [vanishing_at(finite_others(points, point)) for point in points]
    return [[*row, *[Fraction(0)] * (len(points) - len(row))] for row in rows]


def filter_matrix(points, taps):
    """G: V with a column for each tap, row i divided by N[i]."""
    rows = []
    for point, row in zip(points, evaluation(points, taps), strict=True):
        finite = point is not INFINITY
        norm = prod((point - other for other in finite_others(points, point)), start=Fraction(1)) if finite else 1
        rows.append([value / norm for value in row])
    return rows


def result_matrix(points, outputs):
    """A^T: the transpose of V with a column for each output."""
    return [list(row) for row in zip(*evaluation(points, outputs), strict=True)]
